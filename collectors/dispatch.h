// The dispatch collector: a global at::RecordFunction callback that sees every operator and autograd node of the process, on its own
// thread, and turns those of attention into calls.
//
// Life of a call: docs/architecture.md. Callbacks never throw, take no lock in the steady state, and return at once for any operator
// that is not attention.
#pragma once

#include "collectors/thread_state.h"

namespace attntrace {

// Registers the callbacks. They are never removed: a step that is under way keeps copies of them. `global_callbacks`: see AttntraceStart.
void StartDispatch(const uint32_t* global_callbacks) noexcept;
// From then on every callback returns at once.
void StopDispatch() noexcept;

// Counts the backward that a thread still has open: at the end of the process.
void CloseBackward(ThreadState* state) noexcept;

}  // namespace attntrace
