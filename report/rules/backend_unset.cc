// backend-unset: a Transformers attention layer ran with no implementation selected, so it ran eager, or died of that.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/built.h"
#include "report/rules/causal.h"
#include "report/rules/incidents.h"
#include "report/rules/rules.h"
#include "report/rules/selection.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

bool RanUnset(const Variant& variant) {
  return variant.backend() == "eager" && !HasForward(variant) && IsUnset(variant.module());
}

void AddBuilt(const Report& report, Finding* finding) {
  std::vector<std::string> places;
  for (const Frame* frame : BuiltFrames(report, *finding)) places.push_back(Place(frame));
  if (!places.empty()) AddText(finding, "built", absl::StrJoin(places, ", "));
}

void Judge(const Report& report, const Variant& variant, Finding* finding) {
  const Module& module = variant.module();
  const std::string& mask = module.attention_mask();
  AddBuilt(report, finding);
  AddText(finding, "config class", module.config_class());
  AddText(finding, "layer class", module.class_name());
  if (!mask.empty()) AddText(finding, "mask passed", mask);
  AddRegistered(report, MaskOf(variant), finding);
  const bool wrong = LostItsMask(report, variant);
  const std::string config = module.config_class().empty() ? "The layer's config" : module.config_class();
  finding->set_why(absl::StrCat(
      config, "._attn_implementation is None: ", module.class_name().empty() ? "the layer" : module.class_name(),
      " was built outside a PreTrainedModel, which would have filled it. Transformers ran eager instead",
      wrong ? ", which ignores is_causal, and built no mask: the result is wrong as well (causal-mask-lost)." : "."));
  if (wrong) finding->set_severity("error");

  std::string text = "select an implementation on the config before the layers are built";
  if (mask == "BlockMask") absl::StrAppend(&text, "; only a flex implementation takes the BlockMask that was passed");
  if (mask == "None" && module.is_causal() == "yes") absl::StrAppend(&text, "; sdpa applies the causal mask by itself");
  AdviseSelection(report, MaskOf(variant), text, finding);
  AddAdvice(finding, "build the layers inside a PreTrainedModel, whose constructor selects one");
}

// The layer was handed a mask that is no tensor: what became of it, and who would have taken it.
std::string WhoTakes(const Report& report, const PassedMask& mask) {
  if (mask.type != "BlockMask") return "";
  const std::vector<std::string> all = Registered(report), fitting = RegisteredTaking(report, mask);
  if (all.empty()) return "";
  return absl::StrCat(" The BlockMask that it was given reached no attention: of what is registered here, ",
                      fitting.empty() ? "nothing takes" : JoinWords(fitting),
                      fitting.empty()       ? ""
                      : fitting.size() == 1 ? " takes"
                                            : " take",
                      " one.");
}

// Transformers 4.54 to 5.0, and what looks the selection up in a dictionary, stop with KeyError: None.
void JudgeRaised(const Report& report, const Failure& failure, Finding* finding) {
  const Incident& incident = failure.first();
  const PassedMask mask = MaskOf(incident);
  const Module& module = incident.module();
  AddBuilt(report, finding);
  AddText(finding, "config class", module.config_class());
  AddText(finding, "layer class", module.class_name());
  if (!mask.type.empty()) AddText(finding, "mask passed", mask.type);
  AddRegistered(report, mask, finding);
  if (failure.fatal) finding->set_severity("error");
  finding->set_why(absl::StrCat(module.config_class().empty() ? "The layer's config" : module.config_class(),
                                "._attn_implementation is None: ", LayerOf(report, incident),
                                " was built outside a PreTrainedModel, which would have filled it. ",
                                failure.fault == Fault::kMask
                                    ? "Transformers ran eager instead, which adds its mask to the scores: "
                                    : "Looking it up raised ",
                                InWords(incident), ".", WhoTakes(report, mask)));
  std::string text = "select an implementation on the config before the layers are built";
  if (mask.type == "BlockMask") absl::StrAppend(&text, "; only a flex implementation takes the BlockMask that was passed");
  AdviseSelection(report, mask, text, finding);
  AddAdvice(finding, "build the layers inside a PreTrainedModel, whose constructor selects one");
}

}  // namespace

void CheckBackendUnset(const Report& report, std::vector<Finding>* findings) {
  for (const Failure& failure : FindFailures(report)) {
    if (failure.fault != Fault::kUnset && !FailedUnselected(failure)) continue;
    Finding finding = Describe(report, failure);
    JudgeRaised(report, failure, &finding);
    if (!failure.fatal) finding.set_why(absl::StrCat(finding.why(), " The program caught it and went on."));
    findings->push_back(std::move(finding));
  }
  const auto key = [&](const Variant& variant) {
    return absl::StrCat(variant.module().config_class(), "\n", variant.module().attention_mask(), "\n",
                        variant.phase() != "backward" && LostItsMask(report, variant) ? "wrong" : "");
  };
  for (const Cause& cause : FindCauses(report, RanUnset, key)) {
    Finding finding = Describe(cause);
    Judge(report, cause.first(), &finding);
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
