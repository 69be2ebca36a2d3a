// Which dispatcher operators concern attention: one table of names, resolved to schema addresses when PyTorch registers them.
//
// The hot path compares one pointer: an event's name() points into its operator's schema, which lives as long as the operator.
// Names that are no schema's (autograd nodes, autograd functions, compiled regions) are told by their first bytes.
#pragma once

#include <ATen/record_function.h>

#include <cstdint>

#include "tracer/spool/words.h"

namespace attntrace {

enum class Role : uint8_t {
  kNothing,
  kSdpa,    // aten::scaled_dot_product_attention: what it calls inside tells the backend
  kKernel,  // a forward operator of one backend
  kKernelBackward,
  kFlexForward,  // FlexAttentionAutogradOp
  kSoftmax,      // last step of the scores
  kProduct,      // batched matrix product: QK^T or PV of a hand-written attention
  kBarrier,      // what goes in is mixed with other things: scores do not survive it
  kCompiledRegion,
  kCompiledFunction,
  kDraw,   // random numbers into a tensor: perhaps the weights of a model that is being made
  kWhere,  // inside an uncompiled flex_attention: its mask, evaluated
  kRange,  // create_block_mask begins with these
  kSum,    // of six dimensions inside create_block_mask: the full grid is blocked
};

// Indices of the arguments in the schema, -1 where it has none of that name.
struct Arguments {
  int8_t q = -1, k = -1, v = -1, mask = -1, dropout = -1, causal = -1, scale = -1, gqa = -1, heads = -1;
};

struct Operator {
  Role role = Role::kNothing;
  Backend backend = Backend::kUnknown;
  Arguments arguments;
  bool rows_first = false;  // (B, S, H, D) where SDPA has (B, H, S, D)
  const char* name = "";    // for the spool; lives for ever
};

// Registers with the dispatcher: sees every operator that is or will be registered. Once.
void WatchOperators() noexcept;

// Any thread, no lock. Null for an operator that is none of ours.
const Operator* FindOperator(const char* event_name) noexcept;

// An autograd node's backend by its class name; kUnknown where the node computes no attention. `softmax` is set for the
// backward of a softmax, which only belongs to an attention inside a known forward's range.
Backend BackendOfNode(const char* node_name, bool* softmax) noexcept;

}  // namespace attntrace
