// What PyTorch's own profiler would see of CPU memory if nobody were tracing.
//
// Untraced, the CPU allocator notes a block only while a profiler with profile_memory is on: blocks from before are no part of
// its total, and their frees are not reported. Under tracing it notes all of them, so the reports are put back here into what
// they would have been; a training step's profile must not show the frees of the step before.
//
// Any thread; touched only while such a profiler is on. Allocates with malloc, so not under a lock that malloc may need.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attntrace::preload {

struct ProfilerReport {
  bool wanted;  // false: the profiler would not have been told
  int64_t bytes;
  size_t total_allocated;
};

// Turns a report made while the profiler is on into the one that it would have got. `total_allocated` is what the allocator
// says; it is kept where the view cannot be had (no memory, or its lock is not to be had in time).
ProfilerReport AsProfilerSees(void* pointer, int64_t bytes, size_t total_allocated) noexcept;

}  // namespace attntrace::preload
