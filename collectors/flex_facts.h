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

struct FlexArguments {
  MaskKind mask = MaskKind::kUnknown;  // kNone, kBlockMask, or kUnknown where the frame is compiled away
  bool score_mod = false;
  bool causal_asked = false;  // the function that called it has a variable is_causal, which is True
};

// Of the innermost flex_attention on this thread's stack. `facts` null: only these, cheap enough for every dense call.
FlexArguments ReadFlex(VariantFacts* facts) noexcept;

// What that call was given as block_mask, null where there is no such frame. Needs the GIL.
python::Ref BlockMaskOfFlex() noexcept;

// A local variable of a frame by its name, null where it has none. Needs the GIL.
python::Ref LocalNamed(python::Object* frame, const char* name) noexcept;

// Of the frame of a flex_attention that raised: which of its inputs require a gradient. Needs the GIL. In
// python_tensors.cc, which knows ATen.
void ReadRefusedInputs(python::Object* flex_frame, VariantFacts* facts);

// Of an exception's frames, innermost first: the frame of flex_attention itself, null where it was not in it.
python::Object* FlexFrameOf(python::Object* const* frames, int count) noexcept;

// Of an exception's frames, innermost first, that came out of Dynamo at the recompile limit: the function and the guard that
// kept failing. Nothing for others. Needs the GIL.
void ReadLimit(python::Object* const* frames, int count, VariantFacts* facts) noexcept;

// Whether the innermost Python frames are create_block_mask's, blocking a mask that was evaluated on the full grid.
bool BlocksFullGrid() noexcept;

}  // namespace attntrace
