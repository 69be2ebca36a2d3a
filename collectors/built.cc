#include "collectors/built.h"

#include <mutex>
#include <unordered_map>

#include "collectors/call_path.h"
#include "collectors/module_facts.h"

namespace attntrace {
namespace {

using python::Object;
using python::Ref;

constexpr size_t kMostModules = 8192;
constexpr int kMostAround = 16;  // modules in the making at a time

// No reference is kept, so another module may come to lie at the same address; one of the same class, with the same dictionary
// of children, that drew no weights is the only one taken for it.
struct Built {
  const void* type;
  const void* children;
  uint32_t path;
};

std::mutex g_mutex;  // nothing else is taken inside
std::unordered_map<const void*, Built>& Table() noexcept {
  static auto* const table = new std::unordered_map<const void*, Built>;
  return *table;
}

Object* ChildrenOf(Object* module) noexcept { return python::OwnAttribute(module, "_modules"); }

// The configuration that an __init__ was given, or has put away already.
bool BuildsUnselected(Object* frame, Object* module) noexcept {
  const int index = LocalIndex(frame, "config");
  const Ref config = index < 0 ? Ref() : python::Local(frame, index, "config");
  return SelectsNothing(config ? config.get() : python::OwnAttribute(module, "config"));
}

}  // namespace

bool NoteBuilt(Object* const* frames, int count) noexcept {
  Ref modules[kMostAround];
  int found = 0, caller = -1;
  bool building = false;
  for (int i = 0; i < count && found < kMostAround; ++i) {
    if (python::FunctionNameOf(frames[i]) != "__init__" || LocalIndex(frames[i], "self") != 0) continue;
    Ref self = ModuleOfFrame(frames[i]);
    if (!self || !IsModule(self.get())) continue;
    building = true;
    if (!BuildsUnselected(frames[i], self.get())) continue;
    // A class's __init__ calls that of its base: the innermost module was built by what called the outermost of its own.
    if (found == 0 || (found == 1 && modules[0].get() == self.get())) caller = i + 1;
    if (found == 0 || modules[found - 1].get() != self.get()) modules[found++] = std::move(self);
  }
  if (found == 0 || caller >= count) return building;
  const uint32_t path = PathOfRunning(frames + caller, count - caller);
  if (path == 0) return building;
  const std::lock_guard<std::mutex> lock(g_mutex);
  for (int i = 0; i < found; ++i) {
    Object* const module = modules[i].get();
    const Built built{python::TypeOf(module), ChildrenOf(module), path};
    const auto known = Table().find(module);
    if (known != Table().end()) {
      known->second = built;
    } else if (Table().size() < kMostModules) {
      Table().emplace(module, built);
    }
  }
  return building;
}

uint32_t BuiltAt(Object* module) noexcept {
  const void* const children = ChildrenOf(module);
  const std::lock_guard<std::mutex> lock(g_mutex);
  const auto known = Table().find(module);
  if (known == Table().end() || known->second.type != python::TypeOf(module) || known->second.children != children) return 0;
  return known->second.path;
}

}  // namespace attntrace
