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

}  // namespace

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
