// Attention that no dispatcher event tells of: compiled flex_attention, and libraries whose kernels are called through pybind.
//
// It is found by its kernels while launches are watched. What runs inside a compiled region, or inside the backward node of a
// compiled function, is remembered for that region: from then on each run of the region counts the same calls without any
// callback, on the call path it has each time. A launch outside of both is counted only while launches are watched, with the
// call path of the next event on its thread; the report says so.
//
// On the launching thread. Only processes that use a CUDA device come here.
#pragma once

#include <ATen/record_function.h>

#include "collectors/thread_state.h"

namespace attntrace {

// A launch that belongs to nothing that is open. Inside a CUPTI callback.
void OnForeignLaunch(ThreadState* state, KernelId kernel, uint32_t correlation) noexcept;

// Compiled regions, as the dispatch collector sees them begin and end; they nest. False: its end is not wanted.
bool BeginRegion(ThreadState* state, const char* name);
void EndRegion(ThreadState* state);
// The autograd function of a compiled region begins, with its inputs.
void NoteCompiledFunction(ThreadState* state, const at::RecordFunction& event);

// The backward node of a compiled function.
void BeginCompiledNode(ThreadState* state, const BackwardNode& node);
void EndCompiledNode(ThreadState* state, const BackwardNode& node);

// At the next event of a thread that launched attention outside of any region.
inline bool HasLooseCalls(const ThreadState& state) noexcept { return state.loose_calls; }
void CountLooseCalls(ThreadState* state);

}  // namespace attntrace
