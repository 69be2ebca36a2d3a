// What PyTorch's CPU allocator reports before an agent is connected.
//
// Any thread; atomics only.
#pragma once

#include "tracer/preload/hooks.h"

namespace attntrace::preload {

void CountEarly(int64_t bytes) noexcept;

// Fills in what was counted so far.
void CountedSoFar(AttntraceStart* start) noexcept;

// Reports to the agent just connected what other threads counted between CountedSoFar and its connection, as one sum of
// allocations and one of frees, without a pointer.
void HandOver(const AttntraceHooks& hooks, const AttntraceStart& start) noexcept;

}  // namespace attntrace::preload
