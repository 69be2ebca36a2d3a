// The thread on which the agent calls into CUPTI: a call there may take long or never return, and the program must not wait for
// it.
//
// Made at the first job, in processes that use a CUDA device only. In a forked child there is none.
#pragma once

namespace attntrace {

// Runs the job, after the one that another thread may have there, and waits for its end: at most so long in all. False: it was
// not begun, or goes on there, so what it uses must live for ever.
bool RunOnWorker(void (*job)(void*), void* argument, int limit_ms) noexcept;

// What the worker does about once a second, between jobs; one for the life of the process.
void SetWorkerTick(void (*tick)()) noexcept;

void ForgetWorkerAfterFork() noexcept;

}  // namespace attntrace
