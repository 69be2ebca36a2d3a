// CUPTI as this process has it, and who its one subscriber is.
//
// CUPTI's callbacks have one subscriber a process, and PyTorch's profiler wants to be that. So the preload stands in front of
// the functions that concern subscriptions: a client of the program's (the peer) gets a subscription whose callback is ours,
// which hands it exactly what it enabled, and the agent's wishes ride on the same subscription. While there is no peer, the
// agent has one of its own, which is given up the moment a peer comes.
//
// Not seen: a client that takes cuptiSubscribe out of the library by dlsym. It meets the agent's subscription (error 39) while
// the agent has one, and nothing of ours at any other time.
//
// Any thread. No lock is held across a call into CUPTI: changes take turns, the agent's give way at once, a peer's waits a
// bounded time. Nothing here runs at exit, and nothing in a forked child calls CUPTI on the agent's behalf.
#pragma once

#include <stdint.h>

#include "tracer/preload/hooks.h"

namespace attntrace::preload {

using CuptiCallback = void (*)(void* user, int domain, uint32_t callback, const void* data);

// CUPTI's own functions. `found` is false until a libcupti is mapped.
struct RealCupti {
  bool found;
  void* library;
  int (*subscribe)(void** subscriber, CuptiCallback callback, void* user);
  int (*unsubscribe)(void* subscriber);
  int (*enable_callback)(uint32_t enable, void* subscriber, int domain, uint32_t callback);
  int (*enable_domain)(uint32_t enable, void* subscriber, int domain);
  int (*enable_all_domains)(uint32_t enable, void* subscriber);
  int (*finalize)();
  // Null where this CUPTI has none.
  int (*subscribe_v2)(void** subscriber, CuptiCallback callback, void* user, void* parameters);
  int (*register_buffers)(AttntraceBufferRequested requested, AttntraceBufferCompleted completed);
  int (*register_clock)(uint64_t (*clock)());
};
const RealCupti& GetRealCupti() noexcept;

// Whether this process is traced and CUPTI is its own: a forked child's belongs to the parent.
bool Sharing() noexcept;

inline constexpr int kCuptiNotInitialized = 15;  // CUPTI_ERROR_NOT_INITIALIZED: what a caller without a library would be told

// Activity records (cupti_activity.cc): the agent takes the buffers where no peer has; it gives them back at once when one
// comes.
int TakeActivity(AttntraceBufferRequested requested, AttntraceBufferCompleted completed, void (*yield)()) noexcept;
void YieldActivity() noexcept;

// What the agent is given, see hooks.h.
const AttntraceCupti* CuptiForAgent() noexcept;

}  // namespace attntrace::preload
