// mask-backend-mismatch: a mask of a type that the chosen function ignores or rejects.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/incidents.h"
#include "report/rules/rules.h"
#include "report/rules/selection.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

std::string Function(const Module& module) {
  if (!module.function().empty()) return module.function().substr(module.function().rfind(':') + 1);
  return module.selection().empty() ? "the function that ran" : absl::StrCat("\"", module.selection(), "\"");
}

void JudgeRaised(const Report& report, const Incident& incident, Finding* finding) {
  const PassedMask mask = MaskOf(incident);
  const Module& module = incident.module();
  const std::string selected =
      module.selection_state() == "set" ? absl::StrCat("\"", module.selection(), "\" is selected") : "";
  finding->set_title(
      absl::StrCat("a ", mask.type.empty() ? "mask" : mask.type, " was given to a function that does not take one"));
  finding->set_why(absl::StrCat(LayerOf(report, incident), " was given a ", mask.type,
                                selected.empty() ? "" : absl::StrCat(", ", selected), ", and ", Function(module), " raised ",
                                InWords(incident), "."));
  AddText(finding, "mask passed", mask.type);
  if (!module.selection().empty()) AddText(finding, "selected", module.selection());
  AddRegistered(report, mask, finding);
  AdviseSelection(report, mask,
                  absl::StrCat("select an implementation that takes ", mask.type == "BlockMask" ? "a BlockMask" : "this mask"),
                  finding);
}

// A bool mask added to the scores adds 1 where it should hide nothing and 0 where it should hide: no error, no mask.
bool AddsBool(const Variant& variant) { return variant.mask_added() && variant.phase() != "backward"; }

// A tensor where flex_attention takes a BlockMask, or a BlockMask that never reached it. What a compiled one was given is not
// seen.
bool LosesBlockMask(const Variant& variant) {
  return variant.phase() != "backward" && variant.backend() == "flex-dense" && variant.mask_kind() == "none" &&
         (variant.module().attention_mask() == "Tensor" || variant.module().attention_mask() == "BlockMask") &&
         !variant.score_mod();
}

}  // namespace

void CheckMaskBackendMismatch(const Report& report, std::vector<Finding>* findings) {
  for (const Failure& failure : FindFailures(report)) {
    if (failure.fault != Fault::kMask || FailedUnselected(failure)) continue;  // backend-unset tells of the latter
    Finding finding = Describe(report, failure);
    JudgeRaised(report, failure.first(), &finding);
    if (!failure.fatal) finding.set_why(absl::StrCat(finding.why(), " The program caught it and went on."));
    findings->push_back(std::move(finding));
  }
  const auto kind = [](const Variant& variant) { return std::string(AddsBool(variant) ? "bool" : "lost"); };
  const auto picks = [](const Variant& variant) { return AddsBool(variant) || LosesBlockMask(variant); };
  for (const Cause& cause : FindCauses(report, picks, kind)) {
    const Variant& first = cause.first();
    Finding finding = Describe(cause);
    finding.set_severity("error");
    const PassedMask mask = MaskOf(first);
    const std::string who = first.module().class_name().empty() ? "This attention" : first.module().class_name();
    if (AddsBool(first)) {
      finding.set_title("a bool mask was added to the scores, which masks nothing");
      finding.set_why(
          absl::StrCat(who,
                       " adds its mask to the scores, and was given a bool one: True adds 1, False adds 0, nothing is "
                       "hidden. The result is wrong, and no error was raised."));
      AddText(&finding, "mask passed", "bool");
      AddRegistered(report, mask, &finding);
      if (first.module().selection_state() != "not-attention" && !first.module().selection_state().empty()) {
        AddAdvice(&finding, "select an implementation that takes a bool mask", "config._attn_implementation = \"sdpa\"",
                  Change::kSdpa);
      }
      AddAdvice(&finding, "or pass what is added: 0 where a key is seen, the lowest number where it is hidden",
                "mask = torch.where(mask, 0.0, torch.finfo(dtype).min)");
    } else {
      finding.set_title("the mask did not reach flex_attention");
      finding.set_why(absl::StrCat(who, " was given a ", mask.type, ", and ", Function(first.module()),
                                   " called flex_attention without any mask: every token saw all others."));
      AddText(&finding, "mask passed", mask.type);
      AddAdvice(&finding, "pass it on as block_mask, made by create_block_mask",
                "flex_attention(q, k, v, block_mask=attention_mask)");
    }
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
