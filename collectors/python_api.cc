#include "collectors/python_api.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>

namespace attntrace::python {
namespace {

Api g_api;
bool g_loaded = false;

template <typename Function>
bool Find(const char* name, Function** out) noexcept {
  *out = reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
  return *out != nullptr;
}

bool Finalizing() noexcept {
  if (g_api.Py_IsFinalizing != nullptr) return g_api.Py_IsFinalizing() != 0;
  if (g_api._Py_IsFinalizing != nullptr) return g_api._Py_IsFinalizing() != 0;
  return false;
}

// Layout of PyObject in a default build: {refcount, type}.
struct ObjectHead {
  intptr_t references;
  void* type;
};

}  // namespace

const Api& Py() noexcept { return g_api; }
bool Loaded() noexcept { return g_loaded; }

bool Load() noexcept {
  bool found = true;
#define ATTNTRACE_FIND(result, name, arguments) found = Find(#name, &g_api.name) && found;
  ATTNTRACE_PYTHON_REQUIRED(ATTNTRACE_FIND)
#undef ATTNTRACE_FIND
#define ATTNTRACE_FIND(result, name, arguments) Find(#name, &g_api.name);
  ATTNTRACE_PYTHON_OPTIONAL(ATTNTRACE_FIND)
#undef ATTNTRACE_FIND
  g_api.unicode_type = dlsym(RTLD_DEFAULT, "PyUnicode_Type");
  g_api.dict_type = dlsym(RTLD_DEFAULT, "PyDict_Type");
  g_api.bool_type = dlsym(RTLD_DEFAULT, "PyBool_Type");
  g_api.long_type = dlsym(RTLD_DEFAULT, "PyLong_Type");
  g_api.function_type = dlsym(RTLD_DEFAULT, "PyFunction_Type");
  g_api.cell_type = dlsym(RTLD_DEFAULT, "PyCell_Type");
  g_api.bytes_type = dlsym(RTLD_DEFAULT, "PyBytes_Type");
  g_api.type_type = dlsym(RTLD_DEFAULT, "PyType_Type");
  g_api.list_type = dlsym(RTLD_DEFAULT, "PyList_Type");
  g_api.context_variable_type = dlsym(RTLD_DEFAULT, "PyContextVar_Type");
  if (void* const at = dlsym(RTLD_DEFAULT, "PyExc_BaseException"); at != nullptr)
    g_api.base_exception = *static_cast<void**>(at);
  g_api.none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
  g_api.true_object = dlsym(RTLD_DEFAULT, "_Py_TrueStruct");
  if (!found || g_api.unicode_type == nullptr || g_api.type_type == nullptr || g_api.none == nullptr) return false;
  const char* const version = g_api.Py_GetVersion();
  if (strncmp(version, "3.", 2) != 0) return false;
  g_api.minor = atoi(version + 2);
  g_loaded = true;
  return true;
}

bool CanEnter() noexcept {
  return g_loaded && g_api.Py_IsInitialized() != 0 && g_api.PyGILState_GetThisThreadState() != nullptr && !Finalizing();
}

bool InMainInterpreter() noexcept { return g_api.PyThreadState_Get() == g_api.PyGILState_GetThisThreadState(); }

Section::Section() noexcept {
  state_ = g_api.PyGILState_Ensure();
  if (g_api.PyErr_Occurred() != nullptr) g_api.PyErr_Fetch(&type_, &value_, &traceback_);
}

Section::~Section() {
  g_api.PyErr_Clear();
  if (type_ != nullptr) g_api.PyErr_Restore(type_, value_, traceback_);
  g_api.PyGILState_Release(state_);
}

Ref::~Ref() {
  if (object_ != nullptr) g_api.Py_DecRef(object_);
}

Ref& Ref::operator=(Ref&& other) noexcept {
  if (this != &other) {
    if (object_ != nullptr) g_api.Py_DecRef(object_);
    object_ = other.release();
  }
  return *this;
}

void* TypeOf(Object* object) noexcept { return static_cast<ObjectHead*>(object)->type; }

Object* OwnAttribute(Object* object, const char* name) noexcept {
  const Ref dictionary(g_api.PyObject_GenericGetDict(object, nullptr));
  if (!dictionary) {
    g_api.PyErr_Clear();
    return nullptr;
  }
  return g_api.PyDict_GetItemString(dictionary.get(), name);  // the instance keeps it alive
}

Object* ClassAttribute(void* type, const char* name) noexcept {
  const Ref key(g_api.PyUnicode_FromString(name));
  if (!key) {
    g_api.PyErr_Clear();
    return nullptr;
  }
  return g_api._PyType_Lookup(type, key.get());
}

Object* PlainAttribute(Object* object, const char* name) noexcept {
  if (Object* const own = OwnAttribute(object, name); own != nullptr) return own;
  return ClassAttribute(TypeOf(object), name);
}

Object* LoadedModule(const char* name) noexcept {
  Object* const modules = g_api.PyImport_GetModuleDict();
  return modules != nullptr ? g_api.PyDict_GetItemString(modules, name) : nullptr;
}

bool IsString(Object* object) noexcept {
  return object != nullptr && g_api.PyType_IsSubtype(TypeOf(object), g_api.unicode_type) != 0;
}

std::string Text(Object* object) noexcept {
  if (!IsString(object)) return {};
  const char* const text = g_api.PyUnicode_AsUTF8(object);
  if (text == nullptr) {
    g_api.PyErr_Clear();
    return {};
  }
  return text;
}

namespace {
// Names of classes and functions come from C getset descriptors of CPython itself, so getattr is safe for these.
std::string NameAttribute(Object* object, const char* name) noexcept {
  const Ref value(g_api.PyObject_GetAttrString(object, name));
  if (!value) g_api.PyErr_Clear();
  return value ? Text(value.get()) : std::string();
}

// Whether a class answers for this name as `type` does: a metaclass of the program's may have code of its own there.
bool AnswersAsType(void* type, const char* name) noexcept {
  constexpr int kGetAttribute = 18;  // tp_getattro, in words
  void* const meta = TypeOf(type);
  if (meta == g_api.type_type) return true;
  return static_cast<void**>(meta)[kGetAttribute] == static_cast<void**>(g_api.type_type)[kGetAttribute] &&
         ClassAttribute(meta, name) == ClassAttribute(g_api.type_type, name);
}
}  // namespace

std::string TypeName(void* type) noexcept {
  const char* const name = reinterpret_cast<const char* const*>(type)[3];  // tp_name, after PyVarObject: not for heap types
  std::string text = AnswersAsType(type, "__qualname__") ? NameAttribute(type, "__qualname__") : std::string();
  return text.empty() && name != nullptr ? std::string(name) : text;
}

std::string TypeModule(void* type) noexcept {
  return AnswersAsType(type, "__module__") ? NameAttribute(type, "__module__") : Text(ClassAttribute(type, "__module__"));
}

std::string FunctionName(Object* function) noexcept {
  for (int depth = 0; depth < 8 && function != nullptr; ++depth) {
    if (Object* const wrapped = OwnAttribute(function, "__wrapped__"); wrapped != nullptr) {
      function = wrapped;
      continue;
    }
    if (TypeName(TypeOf(function)) == "partial") {
      const Ref inner(g_api.PyObject_GetAttrString(function, "func"));
      if (inner) {
        function = inner.get();  // the partial keeps it alive
        continue;
      }
      g_api.PyErr_Clear();
    }
    break;
  }
  if (function == nullptr) return {};
  const std::string name = NameAttribute(function, "__qualname__");
  return name.empty() ? std::string() : NameAttribute(function, "__module__") + ":" + name;
}

std::string FunctionNameOf(Object* frame) noexcept {
  const Ref code(g_api.PyFrame_GetCode(frame));
  return code ? NameAttribute(code.get(), "co_name") : std::string();
}

Ref GlobalsOf(Object* frame) noexcept {
  Ref globals(g_api.PyFrame_GetGlobals != nullptr ? g_api.PyFrame_GetGlobals(frame)
                                                  : g_api.PyObject_GetAttrString(frame, "f_globals"));
  if (!globals) g_api.PyErr_Clear();
  return globals;
}

std::string ModuleNameOf(Object* frame) noexcept {
  const Ref globals = GlobalsOf(frame);
  return globals ? Text(g_api.PyDict_GetItemString(globals.get(), "__name__")) : std::string();
}

bool LocalsReadable() noexcept { return g_api.PyFrame_GetVarString != nullptr || g_api.minor == 11; }

Ref Local(Object* frame, int index, const char* name) noexcept {
  if (g_api.PyFrame_GetVarString != nullptr) {
    Object* const value = g_api.PyFrame_GetVarString(frame, name);
    if (value == nullptr) g_api.PyErr_Clear();
    return Ref(value);
  }
  if (g_api.minor != 11 || index < 0) return Ref();
  // 3.11: struct _frame {PyObject_HEAD; f_back; f_frame; ...} and _PyInterpreterFrame, whose localsplus starts at byte 72
  // (Include/internal/pycore_frame.h of 3.11; a closed branch, so the layout stands).
  char* const inner = static_cast<char**>(frame)[3];
  if (inner == nullptr) return Ref();
  Object* value = reinterpret_cast<Object**>(inner + 72)[index];
  if (value == nullptr) return Ref();
  if (TypeOf(value) == g_api.cell_type) {
    value = g_api.PyCell_Get(value);
    if (value == nullptr) g_api.PyErr_Clear();
    return Ref(value);
  }
  g_api.Py_IncRef(value);
  return Ref(value);
}

std::string ThreadName() noexcept {
  if (!Loaded() || !CanEnter()) return {};
  const Section gil;
  Object* const threading = LoadedModule("threading");
  Object* const active = threading == nullptr ? nullptr : OwnAttribute(threading, "_active");  // by number
  if (active == nullptr || TypeOf(active) != Py().dict_type) return {};
  intptr_t at = 0;
  Object *number = nullptr, *thread = nullptr;
  while (Py().PyDict_Next(active, &at, &number, &thread) != 0) {
    if (TypeOf(number) != Py().long_type || static_cast<pthread_t>(Py().PyLong_AsLong(number)) != pthread_self()) continue;
    std::string name = TypeName(TypeOf(thread)) == "_MainThread" ? "" : Text(OwnAttribute(thread, "_name"));
    return name;
  }
  return {};
}

}  // namespace attntrace::python
