#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include <atomic>

#include "tracer/preload/cupti.h"
#include "tracer/preload/libraries.h"
#include "tracer/spool/names.h"

namespace attntrace::preload {
namespace {

constexpr RealCupti kNone{};
RealCupti g_found{};
std::atomic<bool> g_ready{false};
std::atomic_flag g_resolving = ATOMIC_FLAG_INIT;

template <typename Function>
bool Take(void* library, const char* name, Function* function) noexcept {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

// The one that is mapped already: another path or namespace would be a second CUPTI beside it.
void* Library() noexcept {
  if (const char* path = secure_getenv(names::kLibcupti)) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
  char path[PATH_MAX];
  return FindLibrary("libcupti", path, sizeof(path)) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

bool Resolve(RealCupti* real) noexcept {
  void* library = Library();
  if (library == nullptr) return false;
  real->library = library;
  real->found = Take(library, "cuptiSubscribe", &real->subscribe) && Take(library, "cuptiUnsubscribe", &real->unsubscribe) &&
                Take(library, "cuptiEnableCallback", &real->enable_callback) &&
                Take(library, "cuptiEnableDomain", &real->enable_domain) &&
                Take(library, "cuptiEnableAllDomains", &real->enable_all_domains) &&
                Take(library, "cuptiFinalize", &real->finalize);
  Take(library, "cuptiSubscribe_v2", &real->subscribe_v2);
  Take(library, "cuptiActivityRegisterCallbacks", &real->register_buffers);
  Take(library, "cuptiActivityRegisterTimestampCallback", &real->register_clock);
  return real->found;
}

}  // namespace

const RealCupti& GetRealCupti() noexcept {
  if (g_ready.load(std::memory_order_acquire)) return g_found;
  if (g_resolving.test_and_set(std::memory_order_acquire)) return kNone;
  int saved_errno = errno;
  bool found = Resolve(&g_found);
  errno = saved_errno;
  if (found) {
    g_ready.store(true, std::memory_order_release);  // the flag stays: nobody resolves again
    return g_found;
  }
  g_resolving.clear(std::memory_order_release);  // not mapped yet
  return kNone;
}

}  // namespace attntrace::preload
