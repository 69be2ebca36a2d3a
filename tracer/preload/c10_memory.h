// The memory reports of libc10, as the preload defines them in front of it and calls them behind.
//
// The same functions with the same mangled names in every PyTorch from 2.6 to 2.15, reached through the PLT by libc10 itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10 {

// As c10::Device is passed: two bytes in one register.
struct Device {
  int8_t type;  // c10::DeviceType
  int8_t index;
};
static_assert(sizeof(Device) == 2);

#define ATTNTRACE_EXPORT __attribute__((visibility("default")))
// Ours have no state: `this` is PyTorch's own object, and is handed on.
class ATTNTRACE_EXPORT ProfiledCPUMemoryReporter {
 public:
  void New(void* pointer, size_t bytes);
  void Delete(void* pointer);
  void OutOfMemory(size_t bytes);
};
ATTNTRACE_EXPORT void reportMemoryUsageToProfiler(void* pointer, int64_t bytes, size_t total_allocated, size_t total_reserved,
                                                  Device device);
ATTNTRACE_EXPORT void reportOutOfMemoryToProfiler(int64_t bytes, size_t total_allocated, size_t total_reserved, Device device);

}  // namespace c10

namespace attntrace::preload {

// libc10's own functions; null where there is none. Any thread, lock-free once resolved.
struct RealMemory {
  void (*fresh)(void* self, void* pointer, size_t bytes);  // ProfiledCPUMemoryReporter's three
  void (*gone)(void* self, void* pointer);
  void (*none_left)(void* self, size_t bytes);
  decltype(&c10::reportMemoryUsageToProfiler) usage;
  decltype(&c10::reportOutOfMemoryToProfiler) out_of_memory;
};
const RealMemory& GetRealMemory() noexcept;

}  // namespace attntrace::preload
