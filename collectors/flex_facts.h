// What is known of a flex_attention call that runs its reference: its mask and modification functions, and why nothing fused
// it, as far as Dynamo's own books say. Only reads; needs a thread that may enter the interpreter, takes the GIL.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collectors/python_api.h"
#include "tracer/spool/words.h"

namespace attntrace {

using VariantFacts = std::vector<std::pair<const char*, std::string>>;  // keys are in report.proto

// The mask of the innermost flex_attention on this thread's stack: kNone, kBlockMask, or kUnknown where its frame is compiled
// away. `facts` null: only that. Cheap enough for every dense call.
MaskKind ReadFlex(VariantFacts* facts) noexcept;

// Of an exception's frames, innermost first, that came out of Dynamo at the recompile limit: the function and the guard that
// kept failing. Nothing for others. Needs the GIL.
void ReadLimit(python::Object* const* frames, int count, VariantFacts* facts) noexcept;

// Whether the innermost Python frames are create_block_mask's, blocking a mask that was evaluated on the full grid.
bool BlocksFullGrid() noexcept;

}  // namespace attntrace
