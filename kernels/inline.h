// The seam between the agent and libattntrace_reference_inline.so, which measures reference runs inside the traced program
// (--reference=inline). C types only; the library is opened beside the agent at the first quiet moment, and never closed.
//
// All of it runs on the thread that called attention, outside of any operator, without the GIL.
#pragma once

#include <cstdint>

#include "tracer/spool/format.h"

extern "C" {

struct AttntraceInlineHost {
  uint32_t size;  // sizeof(AttntraceInlineHost) of the agent: the library refuses another one
  // Bytes that this thread holds and has held at most since the reset, of what it allocated while a run goes on. `type` is
  // c10::DeviceType, `index` the device's.
  int64_t (*live)(int type, int index);
  int64_t (*peak)(int type, int index);
  void (*reset)(int type, int index);
  // One step has been answered: kernels/protocol.h's lines. `to` is AttntraceInlineCall.to.
  void (*answer)(void* to, const char* purpose, const char* request, const char* response);
};

// A call as the agent saw it.
struct AttntraceInlineCall {
  uint32_t size;
  const attntrace::spool::TensorDef *q, *k, *v, *mask;
  const char* backend;  // that ran, and what the mask held, by the names of tracer/spool/words.h
  const char* mask_content;
  uint32_t flags;    // spool::VariantFlags
  int32_t backward;  // 1: one was seen
  double dropout, scale;
  int64_t observed_bytes;  // peak in the program
  uint64_t observed_ns;    // host time of forward and backward there
  int32_t memory_percent;  // of the free memory that a run may need
  int32_t budget_seconds;  // as the user set it, for the words
  uint64_t deadline_ns;    // CLOCK_MONOTONIC; ~0: none
  void* to;
};

// 1 where this thread runs nothing of PyTorch's that a run would meet: no dispatch mode, no functorch level, no saved-tensor
// hooks, no profiler, below no autograd or other wrapper of an operator.
int attntrace_inline_is_quiet();
// Runs every step of the call. Never throws, never waits; what does not fit is answered as skipped.
void attntrace_inline_run(const AttntraceInlineHost* host, const AttntraceInlineCall* call);
}
