// Attention inside an autograd function that a program writes by hand (torch.autograd.Function).
//
// Its forward runs with gradients off, so the calls in it have no autograd numbers of their own: they belong to the function's
// node. Attention that the node's backward writes out, with gradients as the engine left them, is the backward of such a call;
// with gradients switched on again it is a recompute, as a checkpoint's.
//
// On the event's own thread.
#pragma once

#include <ATen/record_function.h>

#include "collectors/thread_state.h"

namespace attntrace {

// Whether the event is that of Function.apply while autograd records: its number is the node's.
bool IsFunctionApplied(const at::RecordFunction& event);

// A backward node starts that holds calls of its function's forward, of which `newest` is the last. Its end comes to
// EndFunctionNode before anything else.
void BeginFunctionNode(ThreadState* state, const at::RecordFunction& event, const ForwardCall& newest);
void EndFunctionNode(ThreadState* state);

// The function's backward that computes here by itself; null where something else does.
FunctionBackward* OwnBackward(ThreadState* state);

// Hand-written attention has ended in it; the candidate is dropped.
void FinishInFunction(ThreadState* state, FunctionBackward* own, int candidate);

// Bytes of a call that is counted on its own are no part of the backward around it.
void CountNested(ThreadState* state, int space, uint64_t bytes) noexcept;

}  // namespace attntrace
