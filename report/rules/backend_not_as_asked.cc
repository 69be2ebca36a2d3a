// backend-not-as-asked: one implementation is selected, and another ran; or a selection cannot give what was asked for with it.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/rules.h"
#include "report/rules/selection.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

// The selection was looked up, so it counts: by Transformers' own code, or by a function of its contract.
bool Selects(const Variant& variant) {
  return variant.module().selection_state() == "set" && variant.phase() != "backward" &&
         (!variant.module().function().empty() || absl::StartsWith(variant.module().class_module(), "transformers."));
}

bool RanOther(const Variant& variant) {
  if (!Selects(variant)) return false;
  const Module& module = variant.module();
  const Family asked = FamilyOfName(module.selection()), ran = FamilyOfBackend(variant);
  // Eager in place of sdpa for the sake of the maps is what eager-attention tells.
  if (ran == Family::kEager && !module.output_attentions().empty()) return false;
  return asked != Family::kUnknown && ran != Family::kUnknown && asked != ran;
}

// Only eager attention has maps to return: from Transformers 4.53 on others leave None in their place, in silence.
bool LacksMaps(const Variant& variant) {
  if (!Selects(variant) || variant.module().output_attentions().empty()) return false;
  const Family ran = FamilyOfBackend(variant);
  return ran == Family::kSdpa || ran == Family::kFlash;
}

void JudgeMaps(const Variant& variant, Finding* finding) {
  const Module& module = variant.module();
  const bool argument = module.output_attentions() == "argument";
  finding->set_severity("note");
  finding->set_title("attention maps were asked for, and will be None");
  finding->set_why(absl::StrCat("output_attentions=True was ", argument ? "passed to the call" : "set in the config",
                                ", and \"", module.selection(), "\" has no maps to return: None stands in their place."));
  AddAdvice(finding, "ask for no maps", argument ? "output_attentions=False" : "config.output_attentions = False");
  AddAdvice(finding, "or, where they are read, select eager for the layers that are analysed; it stores the scores",
            "attn_implementation=\"eager\"");
}

void JudgeOther(const Report& report, const Variant& variant, Finding* finding) {
  const Module& module = variant.module();
  const std::string by = module.function().empty() ? module.class_name() : module.function();
  finding->set_why(absl::StrCat("\"", module.selection(), "\" is selected on ", module.config_class(), ", and ",
                                module.class_name(), " ran ",
                                variant.backend() == "eager" ? "attention written by hand" : variant.backend(), " (", by, ")",
                                variant.path() == "dense" ? ", which stored its scores." : "."));
  AddText(finding, "selected", module.selection());
  AddText(finding, "ran", by);
  AddRegistered(report, MaskOf(variant), finding);
  if (FamilyOfBackend(variant) == Family::kEager) {
    AddAdvice(finding,
              absl::StrCat("call scaled_dot_product_attention in ", by, ", or select an implementation that the class uses"),
              "", Change::kSdpa);
  } else {
    AddAdvice(finding, "select what ran, where it is what was wanted; else see why the class goes another way for these inputs",
              absl::StrCat("config._attn_implementation = \"",
                           FamilyOfBackend(variant) == Family::kSdpa ? "sdpa" : "flex_attention", "\""));
  }
}

}  // namespace

void CheckBackendNotAsAsked(const Report& report, std::vector<Finding>* findings) {
  const auto picks = [](const Variant& variant) { return RanOther(variant) || LacksMaps(variant); };
  const auto key = [](const Variant& variant) {
    return absl::StrCat(RanOther(variant), variant.module().selection(), "\n", variant.module().output_attentions());
  };
  for (const Cause& cause : FindCauses(report, picks, key)) {
    Finding finding = Describe(cause);
    if (RanOther(cause.first())) {
      JudgeOther(report, cause.first(), &finding);
    } else {
      JudgeMaps(cause.first(), &finding);
    }
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
