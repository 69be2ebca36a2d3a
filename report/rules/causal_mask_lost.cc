// causal-mask-lost: a causal layer's call ran without any mask, so every token saw those after it.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/causal.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"

namespace attntrace {

namespace rules {
namespace {

// Before 5.0 these hid the future themselves, by a buffer of the module, whatever mask they were given.
bool MasksByItself(const Report& report, const std::string& function) {
  return absl::StartsWith(report.environment().transformers(), "4.") &&
         (absl::StartsWith(function, "transformers.models.gpt2.") ||
          absl::StartsWith(function, "transformers.models.decision_transformer."));
}

}  // namespace

bool LostItsMask(const Report& report, const Variant& variant) {
  const Module& module = variant.module();
  if ((module.is_causal() != "yes" && !variant.causal_asked()) || variant.causal()) return false;
  const int64_t queries = SeqQ(variant);
  if (queries <= 1 || queries != SeqKv(variant)) return false;
  if (IsSdpa(variant)) return variant.mask_kind() == "none";
  if (variant.backend() == "flex-dense") {  // one that the layer was given, and lost, is mask-backend-mismatch
    const bool given = !module.attention_mask().empty() && module.attention_mask() != "None";
    return variant.mask_kind() == "none" && !variant.score_mod() && !given;
  }
  if (variant.backend() != "eager" || variant.mask_kind() == "bool" || variant.mask_kind() == "float") return false;
  return module.attention_mask() == "None" && !module.function().empty() && !MasksByItself(report, module.function());
}

}  // namespace rules

namespace {

// "_native_flex_attention of diffusers was given is_causal=True"
std::string AskedFunction(const Report& report, const Variant& variant) {
  const Frame* site = rules::CallSite(report, variant);
  const std::string library = rules::OwningLibrary(report, variant);
  return absl::StrCat(site == nullptr ? "the caller" : site->function(), library.empty() ? "" : " of ", library,
                      " was given is_causal=True");
}

}  // namespace

void CheckCausalMaskLost(const Report& report, std::vector<Finding>* findings) {
  using namespace rules;
  const auto picks = [&](const Variant& variant) { return variant.phase() != "backward" && LostItsMask(report, variant); };
  for (const Cause& cause :
       FindCauses(report, picks, [](const Variant& variant) { return variant.module().selection_state(); })) {
    const Variant& first = cause.first();
    const Module& module = first.module();
    Finding finding = Describe(cause);
    finding.clear_gates();
    const bool asked = module.is_causal() != "yes";
    const bool flex = first.backend() == "flex-dense";
    AddText(&finding, asked ? "is_causal" : "module.is_causal", asked ? "True, as an argument" : "yes");
    AddText(&finding, "mask passed", "None");
    std::string why = absl::StrCat(asked ? AskedFunction(report, first) : absl::StrCat(module.class_name(), " is causal"),
                                   ", and its attention ran over Sq=", SeqQ(first), ", Sk=", SeqKv(first),
                                   flex ? " with no block mask and no score_mod" : " with no mask and no is_causal",
                                   ": each token saw the ones after it.");
    if (flex) {
      absl::StrAppend(&why, " flex_attention has no is_causal: what is to be hidden must be in its block mask.");
      AddAdvice(&finding,
                asked ? "pass a block mask beside is_causal, or take a backend that applies is_causal"
                      : "build a causal block mask and pass it, or select sdpa, which applies is_causal by itself",
                "create_block_mask(lambda b, h, q, kv: q >= kv, None, None, S, S)");
    } else if (module.selection_state() == "unset") {
      absl::StrAppend(&why,
                      " With no implementation selected, Transformers builds no mask and runs eager, which ignores is_causal.");
      AddAdvice(
          &finding,
          absl::StrCat("select an implementation on ", module.config_class().empty() ? "the config" : module.config_class(),
                       " before the layers are built; sdpa applies is_causal by itself"),
          "config._attn_implementation = \"sdpa\"", Change::kSdpa);
    } else if (first.backend() == "eager") {
      absl::StrAppend(&why, " Eager attention masks only what its mask argument hides.");
      AddAdvice(&finding, "build the mask and pass it, or select sdpa, which applies is_causal by itself",
                "attention_mask=torch.full((1, 1, S, S), float(\"-inf\")).triu(1)");
    } else {
      AddAdvice(&finding, "tell the operator", "is_causal=True");
    }
    if (!asked) {
      AddAdvice(&finding, "where the layer is meant to see both ways, say so on the module", "layer.is_causal = False");
    }
    finding.set_why(why);
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
