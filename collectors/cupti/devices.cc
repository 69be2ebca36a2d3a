#include "collectors/cupti/devices.h"

#include <dlfcn.h>

#include <atomic>
#include <string>

#include "collectors/mapped.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

template <typename Function>
Function Look(void* library, const char* name) noexcept {
  return library != nullptr ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

// c10::cuda::CUDAStream as it is returned: a c10::Stream, two words.
struct Stream {
  int8_t type, index;
  int64_t id;
};
static_assert(sizeof(Stream) == 16);

struct Capture {
  Stream (*current)(int8_t device) = nullptr;
  void* (*handle)(const Stream*) = nullptr;
  // The driver's: the runtime's twin would leave an error behind for the program to find.
  int (*status)(void* stream, int* status) = nullptr;
};

Capture FindCapture() noexcept {
  void* const c10 = MappedLibrary("libc10_cuda");
  return {Look<Stream (*)(int8_t)>(c10, "_ZN3c104cuda20getCurrentCUDAStreamEa"),
          Look<void* (*)(const Stream*)>(c10, "_ZNK3c104cuda10CUDAStream6streamEv"),
          Look<int (*)(void*, int*)>(MappedLibrary("libcuda"), "cuStreamIsCapturing")};
}

struct Driver {
  int (*context)(void** context) = nullptr;
  int (*device)(int* device) = nullptr;
  int (*memory)(size_t* free, size_t* total) = nullptr;
};

Driver FindDriver() noexcept {
  void* const driver = MappedLibrary("libcuda");
  return {Look<int (*)(void**)>(driver, "cuCtxGetCurrent"), Look<int (*)(int*)>(driver, "cuCtxGetDevice"),
          Look<int (*)(size_t*, size_t*)>(driver, "cuMemGetInfo_v2")};
}

// -1: none. The calling thread's: without a context there is nothing to ask, and none must be made.
int CurrentDevice(const Driver& driver) noexcept {
  void* context = nullptr;
  int device = -1;
  if (driver.context == nullptr || driver.device == nullptr || driver.memory == nullptr) return -1;
  if (driver.context(&context) != 0 || context == nullptr || driver.device(&device) != 0) return -1;
  return device >= 0 && device < spool::kMaxDevices ? device : -1;
}

const Driver& TheDriver() noexcept {
  static const Driver driver = FindDriver();
  return driver;
}

}  // namespace

int64_t ReadDeviceMemory() noexcept {
  const int device = CurrentDevice(TheDriver());
  size_t free = 0, total = 0;
  if (device < 0 || IsCapturing(device) || TheDriver().memory(&free, &total) != 0 || free > total) return -1;
  spool::DeviceTotals& totals = Spool().header().devices[device];
  const auto used = static_cast<int64_t>(total - free);
  const int64_t other = used - totals.reserved_now.load(std::memory_order_relaxed);
  totals.other_bytes.store(other > 0 ? other : 0, std::memory_order_relaxed);
  totals.device_bytes.store(static_cast<int64_t>(total), std::memory_order_relaxed);
  return used;
}

void NoteCuptiMemory(int64_t bytes) noexcept {
  const int device = CurrentDevice(TheDriver());
  if (device >= 0 && bytes > 0) Spool().header().devices[device].cupti_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void RecordDevice(int device) noexcept {
  try {
    void* const driver = MappedLibrary("libcuda");
    auto* const name_of = Look<int (*)(char*, int, int)>(driver, "cuDeviceGetName");
    auto* const version_of = Look<int (*)(int*)>(driver, "cuDriverGetVersion");
    char name[256] = "";
    if (name_of != nullptr && name_of(name, sizeof(name), device) == 0) {
      Spool().Environment("device." + std::to_string(device), name);
    }
    static std::atomic<bool> version_done{false};
    int version = 0;
    if (!version_done.exchange(true, std::memory_order_relaxed) && version_of != nullptr && version_of(&version) == 0) {
      Spool().Environment("cuda.driver", std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10));
    }
  } catch (...) {
    Spool().Add(Counter::kFaults);
  }
}

bool IsCapturing(int device) noexcept {
  static const Capture capture = FindCapture();
  if (capture.current == nullptr || capture.handle == nullptr || capture.status == nullptr) return false;
  const Stream stream = capture.current(static_cast<int8_t>(device));
  int status = 0;
  // An error says that another stream captures, and has no effect.
  return capture.status(capture.handle(&stream), &status) == 0 && status == 1;
}

}  // namespace attntrace
