// What is known of a flex_attention call that runs its reference: its mask and modification functions, and why nothing fused
// it, as far as Dynamo's own books say. Only reads; needs a thread that may enter the interpreter, takes the GIL.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tracer/spool/words.h"

namespace attntrace {

using VariantFacts = std::vector<std::pair<const char*, std::string>>;  // keys are those of Variant.facts in report.proto

// The mask of the innermost flex_attention on this thread's stack: kNone, kBlockMask, or kUnknown where its frame is compiled
// away. `facts` null: only that. Cheap enough for every dense call.
MaskKind ReadFlex(VariantFacts* facts) noexcept;

// Whether the innermost Python frames are create_block_mask's, blocking a mask that was evaluated on the full grid.
bool BlocksFullGrid() noexcept;

}  // namespace attntrace
