// What the dispatch collector does with events of attention: opening and closing calls of operators (calls.cc), block masks
// (block_mask.cc), hand-written attention (handwritten.cc), backwards (backward.cc). All noexcept at their callers; run on the
// event's thread.
#pragma once

#include <ATen/record_function.h>

#include "collectors/operators.h"
#include "collectors/thread_state.h"

namespace attntrace {

// An attention operator starts while no call is open. True: the call is open and its end must come to FinishCall.
bool BeginCall(ThreadState* state, const at::RecordFunction& event, const Operator& op);
// An attention operator starts inside an open call: it may tell the backend, or what an outer autocast made of the inputs.
void Refine(ThreadState* state, const at::RecordFunction& event, const Operator& op);
// aten::where inside an open call: where that is an uncompiled flex_attention with a block mask, its content is read, and how
// many of its blocks it keeps.
void ReadFlexMask(ThreadState* state, const at::RecordFunction& event);
void FinishCall(ThreadState* state);

// Counts a finished forward and remembers which autograd numbers are its own. `end` < 0: autograd recorded nothing.
// Returns its slot.
uint32_t CommitForward(ThreadState* state, const CallRecord& record, int64_t first, int64_t end, int64_t score_elements);
// Reads what is known of the dense flex_attention that runs here into the thread's state.
void ReadFlexFacts(ThreadState* state, const CallSite& site);
void TakeFlexFacts(const ThreadState& state, CallRecord* record);
Phase ForwardPhase(const ThreadState& state) noexcept;
uint64_t ElapsedSince(uint64_t start_ns) noexcept;
// What the call has cost so far, by its meter; nothing where that was never opened (its space is -1).
void TakeMeter(const ThreadState& state, const Meter& meter, CallRecord* record) noexcept;

// Hand-written attention. Each returns what the end of the event has to do.
enum class EndAction : uint8_t { kNothing, kRestoreWatch, kFinishCandidate };
struct StepEnd {
  EndAction action = EndAction::kNothing;
  Lineage::Watch former;
  int candidate = -1;
};
StepEnd BeginProduct(ThreadState* state, const at::RecordFunction& event, const Operator& op);
StepEnd BeginSoftmax(ThreadState* state, const at::RecordFunction& event, const Operator& op);
StepEnd BeginStep(ThreadState* state, const at::RecordFunction& event);
void FinishCandidate(ThreadState* state, int candidate);

// create_block_mask blocks a mask that was evaluated on the full grid. True: its end must come to EndBlockMask.
bool BeginBlockMask(ThreadState* state, const at::RecordFunction& event);
void EndBlockMask(ThreadState* state);

// Autograd nodes.
void BeginNode(ThreadState* state, const at::RecordFunction& event);
void EndNode(ThreadState* state, const at::RecordFunction& event);
// A backward operator of a fused kernel starts while no call is open. True as for BeginCall.
bool BeginBackwardCall(ThreadState* state, const at::RecordFunction& event, const Operator& op);

}  // namespace attntrace
