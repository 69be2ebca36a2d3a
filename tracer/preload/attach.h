// Loading the agent into a process that has PyTorch, once.
//
// Any thread. Only the thread that finds libtorch first goes on; the others return at once and never wait.
#pragma once

#include "tracer/preload/hooks.h"

namespace attntrace::preload {

// The connected agent's hooks, or null. Lock-free; what it returns stays valid for the life of the process.
const AttntraceHooks* ConnectedHooks() noexcept;

// False once it is settled: an agent is connected, or there is none to have.
bool AttachIsPending() noexcept;

// True if an agent was looked for and none is connected.
bool AttachWasDeclined() noexcept;

// Loads the agent if libtorch_cpu is mapped. `has_python`: the caller holds the GIL of an initialised interpreter. Keeps errno.
void AttachIfTorchIsMapped(bool has_python) noexcept;

}  // namespace attntrace::preload
