// --reference=inline: calls that stored their scores are run again, beside fused kernels, in the traced program: on the thread
// that made them, once a variant, at the start of an operator while nothing of attention or autograd is open there.
//
// libattntrace_reference_inline.so measures (kernels/inline.h); here is when, and whose memory it is: what a run allocates is
// its own, and in no figure of the program's. Off unless asked for; then a call in the steady state costs one load.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectors/memory.h"
#include "collectors/variants.h"

namespace attntrace {

struct ThreadState;

struct InlineSettings {
  bool on = false;
  int budget_seconds = 20;  // 0: no limit
  int memory_percent = 50;
};
void StartInlineReference(const InlineSettings& settings) noexcept;
void StopInlineReference() noexcept;  // in a forked child, and when dispatch ends

// A forward was counted in `slot`. `recorded`: autograd keeps it, so that its backward is waited for.
void NoteForInline(ThreadState* state, const CallRecord& call, uint32_t slot, bool recorded) noexcept;
// A backward was counted; its forward may now be run.
void NoteBackwardForInline(const CallRecord& call) noexcept;

extern std::atomic<uint32_t> g_inline_waiting;  // variants that are still to be run
// At the start of an operator outside of the autograd engine, where g_inline_waiting is not 0 (then every event is made).
void TendInlineReference(ThreadState* state) noexcept;

// Of the thread that a run goes on in.
struct InlineMeter {
  int64_t live[kMemorySpaces] = {};
  int64_t peak[kMemorySpaces] = {};
  void Count(int space, int64_t bytes) noexcept {
    live[space] += bytes;
    if (live[space] > peak[space]) peak[space] = live[space];
  }
};

}  // namespace attntrace
