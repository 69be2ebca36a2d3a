// backend-unset: a Transformers attention layer ran with no implementation selected, so it ran eager.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/causal.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

bool RanUnset(const Variant& variant) { return variant.backend() == "eager" && variant.module().selection_state() == "unset"; }

// Whether the registered implementation of this name takes the mask that the layer was given. By the names that Transformers
// and its users register: what is not known by name is not recommended.
bool Takes(absl::string_view name, const Variant& variant) {
  if (absl::StartsWith(name, "paged|") || absl::EndsWith(name, "_paged")) return false;  // continuous batching only
  const std::string& mask = variant.module().attention_mask();
  const bool flex = absl::StrContains(name, "flex");
  const bool flash = absl::StartsWith(name, "flash_attention") || absl::StrContains(name, "flash-attn");
  if (mask == "BlockMask") return flex;
  if (mask == "None") return name == "sdpa" || flash;  // both apply module.is_causal by themselves; flex would see both ways
  const Tensor* tensor = FindTensor(variant, "mask");
  if (tensor != nullptr && tensor->sizes_size() == 2) return name == "sdpa" || flash;
  return name == "sdpa";
}

void Judge(const Report& report, const Variant& variant, Finding* finding) {
  const Module& module = variant.module();
  const std::string& mask = module.attention_mask();
  std::vector<std::string> registered, fitting;
  for (const RegisteredAttention& attention : report.environment().registered_attention()) {
    registered.push_back(attention.name());
    if (Takes(attention.name(), variant)) fitting.push_back(attention.name());
  }
  AddText(finding, "config class", module.config_class());
  AddText(finding, "layer class", module.class_name());
  if (!mask.empty()) AddText(finding, "mask passed", mask);
  if (!registered.empty()) {
    AddText(finding, "registered", JoinWords(registered));
    AddText(finding, "registered, taking this mask", fitting.empty() ? "none" : JoinWords(fitting));
  }
  const bool wrong = LostItsMask(report, variant);
  const std::string config = module.config_class().empty() ? "The layer's config" : module.config_class();
  finding->set_why(absl::StrCat(
      config, "._attn_implementation is None: ", module.class_name().empty() ? "the layer" : module.class_name(),
      " was built outside a PreTrainedModel, which would have filled it. Transformers ran eager instead",
      wrong ? ", which ignores is_causal, and built no mask: the result is wrong as well (causal-mask-lost)." : "."));
  if (wrong) finding->set_severity("error");

  // Where nothing is known of what is registered, what every Transformers with this fault registers.
  std::string choice = fitting.empty() ? (mask == "BlockMask" ? "flex_attention" : "sdpa") : fitting.front();
  for (const std::string& name : fitting) {
    if (name == "sdpa" || (mask == "BlockMask" && name == "flex_attention")) choice = name;
  }
  std::string text = "select an implementation on the config before the layers are built";
  if (mask == "BlockMask") absl::StrAppend(&text, "; only a flex implementation takes the BlockMask that was passed");
  if (mask == "None" && module.is_causal() == "yes") absl::StrAppend(&text, "; sdpa applies the causal mask by itself");
  AddAdvice(finding, text, absl::StrCat("config._attn_implementation = \"", choice, "\""));
  AddAdvice(finding, "build the layers inside a PreTrainedModel, whose constructor selects one");
}

}  // namespace

void CheckBackendUnset(const Report& report, std::vector<Finding>* findings) {
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
