// flex-fell-back: a compiled flex_attention was recompiled until the limit, and ran uncompiled from then on.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/flex_reason.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"
#include "report/text_units.h"

namespace attntrace {

void CheckFlexFellBack(const Report& report, std::vector<Finding>* findings) {
  using namespace rules;
  const auto picks = [&](const Variant& variant) {
    return variant.backend() == "flex-dense" && FlexReasonOf(report, variant) == FlexReason::kRecompileLimit;
  };
  for (const Cause& cause : FindCauses(report, picks, [](const Variant&) { return std::string(); })) {
    const Variant& first = cause.first();
    Finding finding = Describe(cause);
    const FusedCalls before = FusedBefore(report, first);
    const uint64_t fused = before.forward;
    int64_t peak = 0;
    for (const Variant* variant : cause.variants) peak = std::max<int64_t>(peak, variant->peak_bytes());
    const std::string guard = Fact(first, "dynamo.guard"), function = Fact(first, "dynamo.recompiled");
    std::string why = absl::StrCat(FlexPlace(report, first), "Dynamo compiled ", function.empty() ? "it" : function,
                                   " anew until the recompile limit was reached, and runs it as it is written since.");
    if (fused > 0) absl::StrAppend(&why, " The first ", fused, fused == 1 ? " call was" : " calls were", " fused.");
    if (before.peak_bytes > 0 && peak > 0) {
      absl::StrAppend(&why, " A call took ", FormatBytes(before.peak_bytes), " at most while fused, and takes up to ",
                      FormatBytes(peak), " since.");
      AddBytes(&finding, "peak of a call while fused", before.peak_bytes);
    }
    if (!guard.empty()) absl::StrAppend(&why, " The guard that kept failing: ", guard, ".");
    absl::StrAppend(&why, BlockMaskInVain(cause));
    finding.set_why(why);
    if (fused == 0) finding.set_title("flex_attention was compiled anew until the limit, and runs uncompiled since");
    AddCount(&finding, "fused before", static_cast<int64_t>(fused));
    if (!guard.empty()) AddText(&finding, "guard", guard);
    if (!function.empty()) AddText(&finding, "recompiled", function);
    AddAdvice(
        &finding,
        "keep what it is guarded on the same from call to call: pad or bucket lengths, reuse mask_mod and score_mod, keep "
        "requires_grad; or let lengths vary",
        "flex_attention = torch.compile(flex_attention, dynamic=True)");
    const bool oldest = absl::StartsWith(report.environment().torch(), "2.6.");  // where the limit has its older name
    AddAdvice(&finding, "or raise the limit",
              absl::StrCat("torch._dynamo.config.", oldest ? "cache_size_limit" : "recompile_limit", " = 64"));
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
