// The functions through which PyTorch's allocators report, defined in front of libc10's and chained to them.
//
// The CPU allocator tells its reporter of every block, and the reporter passes on what happens while a profiler wants memory.
// Ours stands in front, counts, and lets PyTorch's go on as if it were alone: a profiler sees exactly what it sees untraced.
#include "tracer/preload/attach.h"
#include "tracer/preload/c10_memory.h"
#include "tracer/preload/cpu_blocks.h"
#include "tracer/preload/early_memory.h"
#include "tracer/preload/settings.h"

namespace attntrace::preload {
namespace {

constexpr int8_t kCpu = 0;  // c10::DeviceType::CPU
constexpr int8_t kNoIndex = -1;

// PyTorch's reporter is running below ours: what it passes on is counted already.
thread_local bool t_passing_on = false;

class PassingOn {
 public:
  PassingOn() noexcept { t_passing_on = true; }
  ~PassingOn() { t_passing_on = false; }
  PassingOn(const PassingOn&) = delete;
  PassingOn& operator=(const PassingOn&) = delete;
};

inline bool Watching() noexcept { return GetSettings().tracing && !AttachWasDeclined(); }

void Count(void* pointer, int64_t bytes, size_t total_allocated, size_t total_reserved, c10::Device device) noexcept {
  if (const AttntraceHooks* hooks = ConnectedHooks(); hooks != nullptr) {
    if (hooks->memory != nullptr) hooks->memory(pointer, bytes, total_allocated, total_reserved, device.type, device.index);
  } else if (device.type == kCpu) {
    CountEarly(bytes);
  }
}

void CountOnCpu(void* pointer, int64_t bytes) noexcept { Count(pointer, bytes, 0, 0, {kCpu, kNoIndex}); }

void CountOutOfMemory(int64_t bytes, size_t total_allocated, size_t total_reserved, c10::Device device) noexcept {
  if (const AttntraceHooks* hooks = ConnectedHooks(); hooks != nullptr && hooks->out_of_memory != nullptr) {
    hooks->out_of_memory(bytes, total_allocated, total_reserved, device.type, device.index);
  }
}

}  // namespace
}  // namespace attntrace::preload

namespace c10 {

using namespace attntrace::preload;

void ProfiledCPUMemoryReporter::New(void* pointer, size_t bytes) {
  if (pointer != nullptr && bytes > 0 && Watching()) {
    int64_t replaced = 0;
    const bool kept = KeepBlock(pointer, static_cast<int64_t>(bytes), &replaced);
    if (replaced > 0) CountOnCpu(pointer, -replaced);
    if (kept) CountOnCpu(pointer, static_cast<int64_t>(bytes));
  }
  const PassingOn passing;
  if (auto real = GetRealMemory().fresh) real(this, pointer, bytes);
}

void ProfiledCPUMemoryReporter::Delete(void* pointer) {
  int64_t bytes = 0;
  if (pointer != nullptr && Watching() && ForgetBlock(pointer, &bytes)) CountOnCpu(pointer, -bytes);
  const PassingOn passing;
  if (auto real = GetRealMemory().gone) real(this, pointer);
}

void ProfiledCPUMemoryReporter::OutOfMemory(size_t bytes) {
  if (bytes > 0) CountOutOfMemory(static_cast<int64_t>(bytes), 0, 0, {kCpu, kNoIndex});
  const PassingOn passing;
  if (auto real = GetRealMemory().none_left) real(this, bytes);
}

// Device allocators, and shared memory maps of the CPU, report by themselves.
void reportMemoryUsageToProfiler(void* pointer, int64_t bytes, size_t total_allocated, size_t total_reserved, Device device) {
  if (!t_passing_on) Count(pointer, bytes, total_allocated, total_reserved, device);
  if (auto real = GetRealMemory().usage) real(pointer, bytes, total_allocated, total_reserved, device);
}

void reportOutOfMemoryToProfiler(int64_t bytes, size_t total_allocated, size_t total_reserved, Device device) {
  if (!t_passing_on) CountOutOfMemory(bytes, total_allocated, total_reserved, device);
  if (auto real = GetRealMemory().out_of_memory) real(bytes, total_allocated, total_reserved, device);
}

}  // namespace c10
