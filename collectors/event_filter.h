// Which of PyTorch's events are worth making. Asked by the preload for every operator and every autograd node, before PyTorch
// boxes arguments and builds names for the dispatch collector: an operator that is not attention then costs a look into a
// table.
//
// Nothing is predicted. A place in libtorch that makes events is let through until its first event has come out at the other
// end; only a place that can make no other kind (at::_ops::<operator>::call and ::redispatch, the autograd engine) is then
// silenced, and only where the dispatch collector would do nothing with the event: an event that somebody may want (a
// profiler's, a callback of the program's) or that belongs to something open is always made.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>

#include "collectors/thread_state.h"

namespace attntrace {

// After the dispatch collector's own callback was added; `global_callbacks` counts at::addGlobalCallback.
void StartEventFilter(const uint32_t* global_callbacks, bool others_before) noexcept;

// See AttntraceHooks. Any thread.
int SkipEvent(void* result, uint8_t scope, const void* caller, void** thread) noexcept;
int SkipRecord(void* record, uint8_t scope, const void* caller, void** thread) noexcept;

int SameRecordState(const void* state) noexcept;

// Whether the dispatch collector does something with an operator's event while nothing is open on its thread. Sums are a part
// of every backward, and wanted where create_block_mask may be what sums: for some time after the thread made a range.
enum class Interest : uint8_t { kNone, kAfterRange, kAlways };
void WantSums(ThreadState* state) noexcept;

// What came of the event that was let through last on this thread.
void LearnFunction(EventSource source, const char* name, Interest interest);
void LearnNode(EventSource source, const at::RecordFunction& event);

// Whether this thread is inside the autograd engine, in or between nodes.
bool InsideEngine() noexcept;

}  // namespace attntrace
