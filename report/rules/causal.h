// Whether a causal layer's call lost its mask; asked by two rules.
#pragma once

#include "report/report.pb.h"

namespace attntrace::rules {

// True only where it is certain: the module says that it is causal, several queries attend to as many keys, and nothing told
// the operator so. flex_attention takes no is_causal: there a caller that was given one counts as well. Silent on decoding (Sq
// 1), cross attention and prefill into a cache (Sq != Sk), and on encoders. Of hand-written attention it is certain only where
// an attention function of Transformers' contract was given None for a mask: a module that computes attention in a method of
// its own may make the mask there.
bool LostItsMask(const Report& report, const Variant& variant);

}  // namespace attntrace::rules
