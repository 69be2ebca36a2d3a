// CPython through dlsym: the agent links no libpython, so that one binary serves every interpreter and a C++ program.
//
// All functions of the table need the GIL unless the comment says otherwise. Pointers are PyObject* without a type: the agent
// only reads. Nothing here runs Python code of the program: attributes are read from dictionaries and type slots, never through
// getattr, so that no property, __getattr__ or descriptor of the host is executed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace attntrace::python {

using Object = void;

// X(return type, name, arguments): required in every CPython that PyTorch 2.6 to 2.15 supports.
#define ATTNTRACE_PYTHON_REQUIRED(X)                            \
  X(int, PyGILState_Ensure, ())                                 \
  X(void, PyGILState_Release, (int))                            \
  X(void*, PyGILState_GetThisThreadState, ())                   \
  X(void*, PyThreadState_Get, ())                               \
  X(int, PyGILState_Check, ())                                  \
  X(int, Py_IsInitialized, ())                                  \
  X(Object*, PyEval_GetFrame, ())                               \
  X(Object*, PyFrame_GetBack, (Object*))                        \
  X(Object*, PyFrame_GetCode, (Object*))                        \
  X(int, PyFrame_GetLineNumber, (Object*))                      \
  X(Object*, PyObject_GetAttrString, (Object*, const char*))    \
  X(Object*, PyDict_GetItemString, (Object*, const char*))      \
  X(Object*, PyDict_GetItem, (Object*, Object*))                \
  X(Object*, PyUnicode_InternFromString, (const char*))         \
  X(Object*, PyImport_GetModuleDict, ())                        \
  X(Object*, PyObject_GenericGetDict, (Object*, void*))         \
  X(int, PyDict_Next, (Object*, intptr_t*, Object**, Object**)) \
  X(Object*, PyModule_GetDict, (Object*))                       \
  X(const char*, PyUnicode_AsUTF8, (Object*))                   \
  X(int, PyType_IsSubtype, (void*, void*))                      \
  X(long, PyLong_AsLong, (Object*))                             \
  X(intptr_t, PyTuple_Size, (Object*))                          \
  X(Object*, PyTuple_GetItem, (Object*, intptr_t))              \
  X(Object*, PyUnicode_FromString, (const char*))               \
  X(Object*, _PyType_Lookup, (void*, Object*))                  \
  X(Object*, PyCell_Get, (Object*))                             \
  X(Object*, PyException_GetTraceback, (Object*))               \
  X(Object*, PyException_GetCause, (Object*))                   \
  X(Object*, PyException_GetContext, (Object*))                 \
  X(intptr_t, PyList_Size, (Object*))                           \
  X(const char*, PyBytes_AsString, (Object*))                   \
  X(Object*, PyList_GetItem, (Object*, intptr_t))               \
  X(void, PyErr_Fetch, (Object**, Object**, Object**))          \
  X(void, PyErr_Restore, (Object*, Object*, Object*))           \
  X(Object*, PyErr_Occurred, ())                                \
  X(void, PyErr_GetExcInfo, (Object**, Object**, Object**))     \
  X(void, PyErr_Clear, ())                                      \
  X(const char*, Py_GetVersion, ())                             \
  X(int, PyObject_GC_IsTracked, (Object*))                      \
  X(void, PyObject_GC_Track, (Object*))                         \
  X(void, PyObject_GC_UnTrack, (Object*))                       \
  X(void, Py_IncRef, (Object*))                                 \
  X(void, Py_DecRef, (Object*))

// Null where this CPython has none.
#define ATTNTRACE_PYTHON_OPTIONAL(X)                                  \
  X(int, PyFrame_GetLasti, (Object*))                      /* 3.11 */ \
  X(Object*, PyFrame_GetGlobals, (Object*))                /* 3.11 */ \
  X(Object*, PyFrame_GetVarString, (Object*, const char*)) /* 3.12 */ \
  X(int, PyContextVar_Get, (Object*, Object*, Object**))              \
  X(int, Py_IsFinalizing, ())  /* 3.13 */                             \
  X(int, _Py_IsFinalizing, ()) /* to 3.12 */

struct Api {
#define ATTNTRACE_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  ATTNTRACE_PYTHON_REQUIRED(ATTNTRACE_MEMBER)
  ATTNTRACE_PYTHON_OPTIONAL(ATTNTRACE_MEMBER)
#undef ATTNTRACE_MEMBER
  // Type objects, compared by address.
  void* unicode_type = nullptr;
  void* dict_type = nullptr;
  void* bool_type = nullptr;
  void* long_type = nullptr;
  void* function_type = nullptr;
  void* cell_type = nullptr;
  void* list_type = nullptr;
  void* bytes_type = nullptr;
  void* context_variable_type = nullptr;
  void* type_type = nullptr;
  void* base_exception = nullptr;
  void* none = nullptr;
  void* true_object = nullptr;
  int minor = 0;  // of 3.minor
};

// Fills the table. False where a required name is missing: no interpreter, or one we do not know.
bool Load() noexcept;
bool Loaded() noexcept;
const Api& Py() noexcept;

// Whether this thread may enter the interpreter now without creating a thread state: false on foreign C++ threads and while the
// interpreter shuts down (a PyGILState_Ensure there would end the thread). Needs no GIL.
bool CanEnter() noexcept;

// Whether the interpreter that runs on this thread is the one that a Section enters: in another one of the same process it
// would wait for the GIL that this thread holds. Needs the GIL.
bool InMainInterpreter() noexcept;

// Holds the GIL, and puts a pending exception of the host aside and back.
class Section {
 public:
  Section() noexcept;
  ~Section();
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;

 private:
  int state_;
  Object *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

class Ref {  // a strong reference; needs the GIL
 public:
  Ref() = default;
  explicit Ref(Object* owned) noexcept : object_(owned) {}
  ~Ref();
  Ref(Ref&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Ref& operator=(Ref&& other) noexcept;
  Object* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  Object* release() noexcept {
    Object* const object = object_;
    object_ = nullptr;
    return object;
  }

 private:
  Object* object_ = nullptr;
};

void* TypeOf(Object* object) noexcept;

// Entry of an instance's or a module's own dictionary: borrowed, null where there is none.
Object* OwnAttribute(Object* object, const char* name) noexcept;
// Class attribute, by the method resolution order: borrowed, null where there is none.
Object* ClassAttribute(void* type, const char* name) noexcept;
// Own attribute first, then the class's, for plain values (bool, int, str).
Object* PlainAttribute(Object* object, const char* name) noexcept;
// A module of sys.modules, borrowed.
Object* LoadedModule(const char* name) noexcept;

bool IsString(Object* object) noexcept;
std::string Text(Object* object) noexcept;  // "" where it is no str
// __module__ and __qualname__ of a class or function.
std::string TypeName(void* type) noexcept;
std::string TypeModule(void* type) noexcept;
std::string FunctionName(Object* function) noexcept;  // module:qualname, through partial and __wrapped__; "" where it is none

// Of the code that a frame runs: co_name, and __name__ of its globals.
std::string FunctionNameOf(Object* frame) noexcept;
std::string ModuleNameOf(Object* frame) noexcept;
Ref GlobalsOf(Object* frame) noexcept;

// threading.current_thread().name, as the program gave it or as `threading` makes it ("Thread-1 (work)"): up to 3.13 the system
// does not learn it. "" for the main thread and for threads that are not Python's. Any thread; takes the GIL.
std::string ThreadName() noexcept;

// A local variable of a frame, new reference. Never materialises f_locals: before 3.13 that dictionary would keep the host's
// tensors alive after they are rebound. `index` is the variable's place in co_varnames. Null where it is unbound or this
// CPython offers no safe way (see LocalsReadable).
Ref Local(Object* frame, int index, const char* name) noexcept;
bool LocalsReadable() noexcept;

}  // namespace attntrace::python
