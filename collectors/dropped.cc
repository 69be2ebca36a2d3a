#include "collectors/dropped.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "collectors/exceptions.h"
#include "collectors/fault.h"
#include "collectors/incidents.h"
#include "collectors/python_api.h"
#include "collectors/thread_state.h"

namespace attntrace {
namespace {

using python::Object;
using python::Py;
using python::Ref;

// Whose destructors are wrapped: what PyTorch and Transformers raise of attention, and Exception for what they derive from it.
constexpr const char* kClasses[] = {"Exception",  "RuntimeError",   "NotImplementedError", "TypeError",
                                    "ValueError", "AttributeError", "LookupError",         "KeyError",
                                    "IndexError", "AssertionError"};
constexpr int kCount = std::size(kClasses);
constexpr int kMostEntries = 1024;  // of a traceback: deeper is endless recursion
constexpr int kMostNested = 64;     // a destructor of ours is not recognised by CPython's guard against deep chains

using Destructor = void (*)(Object*);
using Clear = int (*)(Object*);

// The start of PyTypeObject, the same in every supported CPython.
struct TypeHead {
  intptr_t references;
  void* type;
  intptr_t size;
  const char* name;
  intptr_t basic_size, item_size;
  Destructor destructor;
  void* others[17];
  Clear clear;  // the garbage collector's, of what is in a cycle: an exception that a variable of its own frame holds
};

struct Class {
  TypeHead* type = nullptr;
  Destructor destructor = nullptr;
  Clear clear = nullptr;
};
Class g_classes[kCount];
std::atomic<bool> g_on{false};
thread_local int t_nested = 0;

// PyTracebackObject, the same in every supported CPython; held against CPython's own answers once.
struct Traceback {
  intptr_t references;
  void* type;
  Traceback* next;
  Object* frame;
  int last_instruction;
};

bool IsAsExpected(Object* traceback) noexcept {
  static const bool expected = [&] {
    const auto& entry = *static_cast<Traceback*>(traceback);
    const Ref frame(Py().PyObject_GetAttrString(traceback, "tb_frame")),
        next(Py().PyObject_GetAttrString(traceback, "tb_next"));
    return frame.get() == entry.frame && next.get() == (entry.next == nullptr ? Py().none : entry.next);
  }();
  return expected;
}

// Places, by a hash of the class and of all code that the exception passed through: a program may raise and drop millions, with
// a text of its own each. Behind the GIL.
struct PlaceOfDeath {
  uint64_t hash = 0;
  int looked_at = 0;
  uint32_t incident = 0;  // 0: of no concern
};
constexpr int kLooks = 3;  // at a place whose exceptions are told
PlaceOfDeath g_places[256];

// 0 where it cannot be told: an entry that the garbage collector has cleared has no frame.
uint64_t PlaceOf(void* type, Object* traceback) noexcept {
  uint64_t hash = 0xcbf29ce484222325 ^ reinterpret_cast<uintptr_t>(type);
  int entries = 0;
  for (auto* entry = static_cast<Traceback*>(traceback); entry != nullptr; entry = entry->next) {
    if (entry->frame == nullptr || ++entries > kMostEntries) return 0;
    const Ref code(Py().PyFrame_GetCode(entry->frame));
    hash =
        (hash ^ reinterpret_cast<uintptr_t>(code.get()) ^ static_cast<uint32_t>(entry->last_instruction)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return hash;
}

// Libraries that handle exceptions by design, in tracing, in look-ups of optional parts, in `in` and `get`: what they catch is
// theirs.
bool IsHandledByDesign(const std::string& module) noexcept {
  for (const char* const library : {"torch", "transformers", "functorch", "triton", "_collections_abc", "collections", "copy",
                                    "functools", "importlib", "inspect"}) {
    const size_t length = strlen(library);
    if (module.compare(0, length, library) == 0 && (module.size() == length || module[length] == '.')) return true;
  }
  return false;
}

// `dying`: nothing refers to it any more.
void Look(Object* exception, bool dying) noexcept {
  if (!g_on.load(std::memory_order_relaxed)) return;
  const Ref traceback(Py().PyException_GetTraceback(exception));
  if (!traceback || !python::CanEnter() || !python::InMainInterpreter()) return;
  ThreadState* const state = CurrentThread();
  if (state == nullptr || state->inside || !IsAsExpected(traceback.get())) return;
  const uint64_t hash = PlaceOf(python::TypeOf(exception), traceback.get());
  if (hash == 0) return;
  PlaceOfDeath& place = g_places[hash % std::size(g_places)];
  if (place.hash == hash && (place.incident == 0 || place.looked_at >= kLooks)) {
    if (place.incident != 0 && !ForgetTold(exception)) CountIncident(place.incident);
    return;
  }
  // A collection that starts below must not come upon an object that nothing refers to; some destructors expect it tracked.
  const bool tracked = dying && Py().PyObject_GC_IsTracked(exception) != 0;
  if (tracked) Py().PyObject_GC_UnTrack(exception);
  Guarded("exceptions", false, [&] {
    const python::Section gil;  // an exception may be pending: this one died because another came
    if (ForgetTold(exception)) return true;
    const Ref catcher(Py().PyObject_GetAttrString(traceback.get(), "tb_frame"));
    const bool by_program = catcher && !IsHandledByDesign(python::ModuleNameOf(catcher.get()));
    const uint32_t incident = by_program ? RecordDropped(exception) : 0;
    place = {hash, place.hash == hash ? place.looked_at + 1 : 1, incident};
    return true;
  });
  if (tracked) Py().PyObject_GC_Track(exception);
}

template <int kClass>
void AtDeath(Object* exception) {
  const Class& own = g_classes[kClass];
  if (t_nested >= kMostNested) {  // CPython's guard again, which asks whether the class still has CPython's destructor
    own.type->destructor = own.destructor;
    own.destructor(exception);
    own.type->destructor = &AtDeath<kClass>;
    return;
  }
  ++t_nested;
  Look(exception, true);
  own.destructor(exception);
  --t_nested;
}

template <int kClass>
int AtClear(Object* exception) {
  Look(exception, false);
  return g_classes[kClass].clear(exception);
}

template <int... kClass>
void Wrap(std::integer_sequence<int, kClass...>) noexcept {
  ((g_classes[kClass].type->destructor = &AtDeath<kClass>, g_classes[kClass].type->clear = &AtClear<kClass>), ...);
}

}  // namespace

void WatchDroppedExceptions() noexcept {
  for (int i = 0; i < kCount; ++i) {
    void* const at = dlsym(RTLD_DEFAULT, (std::string("PyExc_") + kClasses[i]).c_str());
    if (at == nullptr) return;
    auto* const type = static_cast<TypeHead*>(*static_cast<void**>(at));
    if (type->name == nullptr || strcmp(type->name, kClasses[i]) != 0) return;
    if (type->destructor == nullptr || type->clear == nullptr) return;
    g_classes[i] = {type, type->destructor, type->clear};
  }
  Wrap(std::make_integer_sequence<int, kCount>());
  g_on.store(true, std::memory_order_relaxed);
}

void StopDroppedExceptions() noexcept { g_on.store(false, std::memory_order_relaxed); }

}  // namespace attntrace
