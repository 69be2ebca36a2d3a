// Why a flex_attention that ran its reference was not fused, from the frames that lead to it and from what Dynamo's books said.
// Asked by two rules.
#pragma once

#include <string>

#include "report/report.pb.h"
#include "report/rules/support.h"

namespace attntrace::rules {

enum class FlexReason {
  kNoCompile,
  kCompileDisabled,  // TORCHDYNAMO_DISABLE, torch._dynamo.config.disable
  kStance,           // torch.compiler.set_stance
  kDebug,            // _FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
  kRecompileLimit,   // fused before, where its calls could be seen
  kHeadSize,         // heads below the template's smallest, and Dynamo gave up on it
  kSuppressed,       // compiling it failed, and Dynamo was told to go on
  kGaveUp,           // Dynamo ran the function as it is, and its books do not say why
  kGraphBreak,
  kOtherBackend,
};

FlexReason FlexReasonOf(const Report& report, const Variant& variant);

// A fact of the variant; empty where it has none of that name.
std::string Fact(const Variant& variant, const std::string& name);

// Calls that ran fused at the same user's line: how many forward, and the largest peak of one, forward or backward.
struct FusedCalls {
  uint64_t forward = 0;
  int64_t peak_bytes = 0;
};
FusedCalls FusedBefore(const Report& report, const Variant& variant);

// " Its BlockMask keeps 3.12 % of the blocks, which saves no memory here.", as far as that is known; empty where none was
// given.
std::string BlockMaskInVain(const Cause& cause);

// "vendor, in attention.py:41: " or "train.py:88: ".
std::string FlexPlace(const Report& report, const Variant& variant);

}  // namespace attntrace::rules
