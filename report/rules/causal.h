// Whether a causal layer's call lost its mask; asked by two rules.
#pragma once

#include "report/report.pb.h"

namespace attntrace::rules {

// True only where it is certain: the module says that it is causal, several queries attend to as many keys, and nothing told
// the operator so. Silent on decoding (Sq 1), cross attention and prefill into a cache (Sq != Sk), and on encoders. Of
// hand-written attention it is certain only where the module is known to have been given None.
bool LostItsMask(const Variant& variant);

}  // namespace attntrace::rules
