// Tensor storage as PyTorch's allocators report it, counted until an agent takes over. See memory.cc for the interposed
// functions.
//
// Any thread; ResolveMemory not under an allocator's lock.
#pragma once

#include "tracer/preload/hooks.h"

namespace attntrace::preload {

// Finds the real functions in the mapped libc10, so that the first report under an allocator's lock need not.
void ResolveMemory() noexcept;

// Fills in what was counted of the CPU so far.
void CountedSoFar(AttntraceStart* start) noexcept;

// Reports to the agent just connected what other threads had counted between CountedSoFar and its connection, as one sum of
// allocations and one of frees without a pointer.
void HandOver(const AttntraceHooks& hooks, const AttntraceStart& start) noexcept;

}  // namespace attntrace::preload
