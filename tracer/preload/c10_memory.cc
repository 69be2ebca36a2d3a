#include "tracer/preload/c10_memory.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>

#include <atomic>

#include "tracer/preload/libraries.h"

namespace attntrace::preload {
namespace {

constexpr RealMemory kNone{};
RealMemory g_found{};
std::atomic<const RealMemory*> g_real{nullptr};
std::atomic_flag g_resolving = ATOMIC_FLAG_INIT;

// libc10 is mapped RTLD_LOCAL below torch._C, out of RTLD_NEXT's sight, so its functions are looked up in its own handle. The
// handle is kept: libc10 must stay as long as its functions are known here.
void Resolve() noexcept {
  int saved_errno = errno;
  char path[PATH_MAX];
  void* c10 = FindLibrary("libc10", path, sizeof(path)) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (c10 != nullptr) {
    g_found.fresh = reinterpret_cast<decltype(g_found.fresh)>(dlsym(c10, "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm"));
    g_found.gone = reinterpret_cast<decltype(g_found.gone)>(dlsym(c10, "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv"));
    g_found.none_left =
        reinterpret_cast<decltype(g_found.none_left)>(dlsym(c10, "_ZN3c1025ProfiledCPUMemoryReporter11OutOfMemoryEm"));
    g_found.usage =
        reinterpret_cast<decltype(g_found.usage)>(dlsym(c10, "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"));
    g_found.out_of_memory =
        reinterpret_cast<decltype(g_found.out_of_memory)>(dlsym(c10, "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"));
  }
  g_real.store(&g_found, std::memory_order_release);
  errno = saved_errno;
}

}  // namespace

// Attaching asks first, and so does the first CPU allocation: neither holds a lock.
const RealMemory& GetRealMemory() noexcept {
  if (const RealMemory* real = g_real.load(std::memory_order_acquire)) return *real;
  // One thread looks; another that comes meanwhile goes without rather than wait for the loader.
  if (g_resolving.test_and_set(std::memory_order_acquire)) return kNone;
  Resolve();
  return g_found;
}

}  // namespace attntrace::preload
