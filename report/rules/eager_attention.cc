// eager-attention: attention written out as QK^T, softmax, PV stored its scores. Who wrote it decides the advice.
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/rules.h"
#include "report/rules/selection.h"
#include "report/rules/submodels.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

enum class Author { kNeedWeights, kFastPath, kMapsWanted, kSelectedEager, kSelectedOther, kAnyCode };

bool IsStored(const Variant& variant) {
  const bool by_hand = variant.backend() == "eager" || (variant.backend() == "native-mha" && variant.path() == "dense");
  // backend-unset names the cause of these, and carries their bytes.
  if (!by_hand || HasForward(variant) || IsUnset(variant.module())) return false;
  // backend-not-as-asked likewise, where another implementation is selected, the layer asks for it, and nothing explains the
  // rest.
  const Module& module = variant.module();
  const bool asks = !module.function().empty() || absl::StartsWith(module.class_module(), "transformers.");
  return !asks || module.selection_state() != "set" || !module.output_attentions().empty() ||
         FamilyOfName(module.selection()) == Family::kEager || FamilyOfName(module.selection()) == Family::kUnknown;
}

// nn.MultiheadAttention writes attention out only where its weights are asked for.
bool InsideMultiheadAttention(const Report& report, const Variant& variant) {
  const CallPath* path = FindPath(report, variant);
  if (path == nullptr) return false;
  const int end = path->call_site() < 0 ? path->frames_size() : path->call_site();
  for (int i = 0; i < end; ++i) {
    if (path->frames(i) >= static_cast<uint32_t>(report.frames_size())) continue;
    const Frame& frame = report.frames(static_cast<int>(path->frames(i)));
    if (frame.module() == "torch.nn.functional" && frame.function() == "multi_head_attention_forward") return true;
    if (frame.module() == "torch.nn.modules.activation" && absl::StrContains(frame.function(), "MultiheadAttention"))
      return true;
  }
  return false;
}

// Layers of older Transformers carry no config (BertSelfAttention in 4.48): then the model's says what was selected.
bool ModelSpeaks(const Module& module) {
  return module.selection_state() != "set" && module.model_selection() == "eager" &&
         absl::StartsWith(module.class_module(), "transformers.");
}

Author AuthorOf(const Report& report, const Variant& variant) {
  const Module& module = variant.module();
  if (variant.backend() == "native-mha") return Author::kFastPath;
  if (InsideMultiheadAttention(report, variant)) return Author::kNeedWeights;
  if (!module.output_attentions().empty()) return Author::kMapsWanted;
  if (ModelSpeaks(module)) return Author::kSelectedEager;
  if (module.selection_state() != "set") return Author::kAnyCode;
  return module.selection() == "eager" ? Author::kSelectedEager : Author::kSelectedOther;
}

void JudgeSelectedEager(const Module& module, Finding* finding) {
  if (!module.no_sdpa_class().empty()) {
    finding->set_title("the model's class supports eager attention alone of what Transformers selects by itself");
    finding->set_why(
        absl::StrCat(module.config_class(), "._attn_implementation is \"eager\": ", module.no_sdpa_class(),
                     "._supports_sdpa is False, so Transformers selects eager, without a word where nothing was asked for."));
    AddText(finding, "supports no sdpa", module.no_sdpa_class());
    AddAdvice(finding,
              "look for a release whose class supports sdpa or flex_attention; asking for them by name says what it supports",
              "attn_implementation=\"flex_attention\"");
    return;
  }
  const std::string config = ModelSpeaks(module) ? absl::StrCat(module.model_class(), ".config") : module.config_class();
  std::string why = absl::StrCat(config, "._attn_implementation is \"eager\""), fused = "\"sdpa\"";
  if (module.requested_by() == "call") {
    absl::StrAppend(&why, ": set after the model was made, by set_attn_implementation as it seems.");
  } else if (module.requested().empty()) {
    absl::StrAppend(&why, ": set on the configuration, or asked for where it could not be seen.");
  } else if (module.requested_by() == "config" && module.requested() == "eager") {
    absl::StrAppend(&why, ", as it was when the model was made: asked for by attn_implementation=\"eager\", or set on it.");
  } else if (module.requested() != "eager") {
    absl::StrAppend(&why, ", though the model was made with \"", module.requested(), "\".");
  } else if (module.requested_by() == "dict") {
    absl::StrAppend(&why, ": asked for by attn_implementation={\"", module.part_config(), "\": \"eager\"}.");
    fused = absl::StrCat("{\"", module.part_config(), "\": \"sdpa\"}");
  } else {
    absl::StrAppend(&why, ": asked for by attn_implementation=\"eager\".");
  }
  finding->set_why(why);
  AddAdvice(finding, "select a fused implementation; a class that supports none says so with a ValueError",
            absl::StrCat("attn_implementation=", fused), Change::kSdpa);
}

void JudgeMapsWanted(const Module& module, Finding* finding) {
  const bool argument = module.output_attentions() == "argument";
  finding->set_title("attention maps were asked for, so attention stored its scores");
  finding->set_why(absl::StrCat("By request: output_attentions=True, ", argument ? "passed to the call" : "set in the config",
                                module.selection() == "eager" ? ", with attn_implementation=\"eager\"" : "",
                                ". A fused kernel has no maps to return."));
  AddAdvice(finding, "ask for no maps where nobody reads them, and select a fused implementation",
            argument ? "output_attentions=False" : "config.output_attentions = False", Change::kSdpa);
  AddAdvice(finding,
            "where one layer is analysed, leave eager to that layer: give it a copy of the config with "
            "_attn_implementation = \"eager\" and select \"sdpa\" for the rest");
}

void JudgeNeedWeights(Finding* finding) {
  finding->set_title("nn.MultiheadAttention stored its scores to return its weights");
  finding->set_why(
      "nn.MultiheadAttention was called with need_weights=True, its default: the averaged weights are returned beside the "
      "output, and that takes bmm, softmax, bmm.");
  AddAdvice(finding, "ask for no weights where the second result is not read", "need_weights=False", Change::kSdpa);
}

void JudgeFastPath(Finding* finding) {
  finding->set_title("nn.MultiheadAttention's inference fast path stored its scores");
  finding->set_why(
      "The fast path of nn.MultiheadAttention and nn.TransformerEncoderLayer (eval, no grad) computes bmm, softmax, bmm in one "
      "operator here.");
  AddAdvice(finding, "switch the fast path off: the module then calls scaled_dot_product_attention",
            "torch.backends.mha.set_fastpath_enabled(False)", Change::kSdpa);
}

void JudgeSelectedOther(const Module& module, Finding* finding) {
  const std::string by = module.function().empty() ? module.class_name() : module.function();
  finding->set_why(
      absl::StrCat("\"", module.selection(), "\" is selected, and ", by, " wrote attention out by hand all the same."));
  AddAdvice(finding,
            absl::StrCat("call scaled_dot_product_attention in ", by, ", or select an implementation that the class uses"), "",
            Change::kSdpa);
}

void JudgeAnyCode(const Report& report, const Variant& variant, Finding* finding) {
  const Frame* site = CallSite(report, variant);
  const std::string library = OwningLibrary(report, variant);
  std::string where = site == nullptr ? "The program" : Place(site);
  if (!library.empty()) where = absl::StrCat("The library ", library, ", in ", where, ",");
  finding->set_why(absl::StrCat(where, " computes QK^T, softmax and PV by itself."));
  AddAdvice(finding, "replace the three steps by one call; a mask or bias that is added to the scores goes into attn_mask",
            "out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)", Change::kSdpa);
}

}  // namespace

void CheckEagerAttention(const Report& report, std::vector<Finding>* findings) {
  const auto key = [&](const Variant& variant) {
    return absl::StrCat(AuthorOf(report, variant), "\n", variant.module().selection(), "\n",
                        variant.module().output_attentions());
  };
  // A part that was left at eager is submodel-backend-differs' to tell, with its bytes, unless it has another reason to run it.
  const std::set<uint32_t> odd = OddVariants(report);
  const auto picks = [&](const Variant& variant) {
    return IsStored(variant) && !(odd.contains(variant.id()) && variant.module().output_attentions().empty());
  };
  for (const Cause& cause : FindCauses(report, picks, key)) {
    const Module& module = cause.first().module();
    Finding finding = Describe(cause);
    switch (AuthorOf(report, cause.first())) {
      case Author::kNeedWeights:
        JudgeNeedWeights(&finding);
        break;
      case Author::kFastPath:
        JudgeFastPath(&finding);
        break;
      case Author::kMapsWanted:
        JudgeMapsWanted(module, &finding);
        break;
      case Author::kSelectedEager:
        JudgeSelectedEager(module, &finding);
        break;
      case Author::kSelectedOther:
        JudgeSelectedOther(module, &finding);
        break;
      case Author::kAnyCode:
        JudgeAnyCode(report, cause.first(), &finding);
        break;
    }
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
