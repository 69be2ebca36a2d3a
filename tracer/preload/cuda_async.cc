// PyTorch's cudaMallocAsync backend makes no c10 reports. Its libc10_cuda reaches the CUDA runtime through the PLT, so the two
// calls it makes are seen here, and reported in its name. Any other library's calls go through untouched.
//
// The caller's own runtime is called: a process may have two of them mapped.
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include <atomic>

#include "tracer/preload/attach.h"
#include "tracer/preload/block_table.h"
#include "tracer/preload/libraries.h"
#include "tracer/preload/settings.h"
#include "tracer/preload/spin_lock.h"

namespace attntrace::preload {
namespace {

constexpr int kNotSupported = 801;  // cudaErrorNotSupported
constexpr int8_t kCuda = 1;         // c10::DeviceType::CUDA
constexpr int kDevices = 64;

// One place that calls, and the runtime that its library is linked with.
struct Caller {
  std::atomic<void*> address{nullptr};  // written last
  bool torch = false;
  int (*allocate)(void** pointer, size_t bytes, void* stream) = nullptr;
  int (*release)(void* pointer, void* stream) = nullptr;
  int (*device)(int* device) = nullptr;
};
constexpr size_t kCallers = 64;
Caller g_callers[kCallers];

SpinLock g_lock;      // guards what follows, and the callers while one is added
BlockTable g_blocks;  // bytes << 8 | device
size_t g_live[kDevices];

// dlsym on the caller's handle searches it and what it needs, so never this library. A program cannot be opened by its name,
// and a library may leave it to others to bring the runtime.
template <typename Function>
void Look(void* library, void* runtime, const char* name, Function* function) noexcept {
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) found = dlsym(RTLD_NEXT, name);
  if (found == nullptr && runtime != nullptr) found = dlsym(runtime, name);
  *function = reinterpret_cast<Function>(found);
}

void Resolve(void* address, Caller* caller) noexcept {
  Dl_info info{};
  void* library = nullptr;
  if (dladdr(address, &info) != 0 && info.dli_fname != nullptr) {
    library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);  // kept: what is remembered of it stays true
    const char* slash = strrchr(info.dli_fname, '/');
    caller->torch = strncmp(slash == nullptr ? info.dli_fname : slash + 1, "libc10_cuda.", 12) == 0;
  }
  char path[PATH_MAX];
  void* runtime = FindLibrary("libcudart", path, sizeof(path)) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  Look(library, runtime, "cudaMallocAsync", &caller->allocate);
  Look(library, runtime, "cudaFreeAsync", &caller->release);
  Look(library, runtime, "cudaGetDevice", &caller->device);
}

const Caller* Known(void* address, size_t* place) noexcept {
  *place = (reinterpret_cast<uintptr_t>(address) >> 2) % kCallers;
  for (size_t i = 0; i < kCallers; ++i, *place = (*place + 1) % kCallers) {
    void* there = g_callers[*place].address.load(std::memory_order_acquire);
    if (there == address) return &g_callers[*place];
    if (there == nullptr) return nullptr;
  }
  *place = kCallers;
  return nullptr;
}

// By value: what finds no room is looked up every time.
void Find(void* address, Caller* found) noexcept {
  size_t place = 0;
  const Caller* known = Known(address, &place);
  int saved_errno = errno;
  if (known == nullptr) Resolve(address, found);
  errno = saved_errno;
  if (known == nullptr && g_lock.Lock()) {
    if (Known(address, &place) == nullptr && place != kCallers) {
      Caller& fresh = g_callers[place];
      fresh.torch = found->torch;
      fresh.allocate = found->allocate;
      fresh.release = found->release;
      fresh.device = found->device;
      fresh.address.store(address, std::memory_order_release);
    }
    g_lock.Unlock();
  } else if (known != nullptr) {
    found->torch = known->torch;
    found->allocate = known->allocate;
    found->release = known->release;
    found->device = known->device;
  }
}

void Report(void* pointer, int64_t bytes, int device, size_t live) noexcept {
  const AttntraceHooks* hooks = ConnectedHooks();
  if (hooks != nullptr && hooks->memory != nullptr)
    hooks->memory(pointer, bytes, live, live, kCuda, static_cast<int8_t>(device));
}

void Allocated(const Caller& caller, void* pointer, size_t bytes) noexcept {
  int device = -1;
  if (caller.device == nullptr || caller.device(&device) != 0 || device < 0 || device >= kDevices) return;
  if (!g_lock.Lock()) return;
  bool fresh = false;
  const bool kept = g_blocks.Put(pointer, uint64_t{bytes} << 8 | static_cast<uint64_t>(device), &fresh);
  if (kept) g_live[device] += bytes;
  size_t live = g_live[device];
  g_lock.Unlock();
  if (kept) Report(pointer, static_cast<int64_t>(bytes), device, live);
}

void Released(void* pointer) noexcept {
  if (!g_lock.Lock()) return;
  uint64_t value = 0;
  const bool known = g_blocks.Take(pointer, &value);
  const auto device = static_cast<int>(value & 0xff);
  if (known) g_live[device] -= value >> 8;
  size_t live = g_live[device];
  g_lock.Unlock();
  if (known) Report(pointer, -static_cast<int64_t>(value >> 8), device, live);
}

}  // namespace
}  // namespace attntrace::preload

#define ATTNTRACE_EXPORT extern "C" __attribute__((visibility("default")))

using namespace attntrace::preload;

ATTNTRACE_EXPORT int cudaMallocAsync(void** pointer, size_t bytes, void* stream) {
  Caller caller;
  Find(__builtin_return_address(0), &caller);
  if (caller.allocate == nullptr) return kNotSupported;
  int result = caller.allocate(pointer, bytes, stream);
  if (result == 0 && caller.torch && GetSettings().tracing) Allocated(caller, *pointer, bytes);
  return result;
}

ATTNTRACE_EXPORT int cudaFreeAsync(void* pointer, void* stream) {
  Caller caller;
  Find(__builtin_return_address(0), &caller);
  if (caller.release == nullptr) return kNotSupported;
  if (GetSettings().tracing) Released(pointer);  // whoever frees it: a call in tail position hides the library
  return caller.release(pointer, stream);
}
