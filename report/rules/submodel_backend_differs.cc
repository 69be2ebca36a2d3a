// submodel-backend-differs: parts of one model run different implementations, and nobody asked for it.
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "report/rules/rules.h"
#include "report/rules/selection.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

struct Part {
  std::vector<const Variant*> variants;
  std::set<std::string> selected, requested, ran;
  bool by_dict = false;
};

std::string Words(const std::set<std::string>& words) {
  return words.empty() ? "-" : JoinWords(std::vector<std::string>(words.begin(), words.end()));
}

// Parts of one model, by the class of their configuration. Models of one class are told apart by their own selection: a program
// that compares implementations has one after the other.
std::map<std::string, std::map<std::string, Part>> Models(const Report& report) {
  std::map<std::string, std::map<std::string, Part>> models;
  for (const Variant& variant : report.variants()) {
    const Module& module = variant.module();
    if (variant.phase() == "backward" || module.selection_state() != "set" || module.model_class().empty()) continue;
    const std::string model = absl::StrCat(variant.process(), "\n", module.model_class(), "\n", module.model_selection());
    Part& part = models[model][module.config_class()];
    part.variants.push_back(&variant);
    part.selected.insert(module.selection());
    part.ran.insert(variant.backend());
    if (!module.requested().empty()) part.requested.insert(module.requested());
    part.by_dict |= module.requested_by() == "dict";
  }
  return models;
}

// Each part was asked for by its own name, and has what was asked for.
bool IsRequested(const Part& part) { return part.by_dict && part.selected == part.requested; }

}  // namespace

void CheckSubmodelBackendDiffers(const Report& report, std::vector<Finding>* findings) {
  for (const auto& [model, parts] : Models(report)) {
    std::set<std::string> selected;
    bool requested = true;
    for (const auto& [config, part] : parts) {
      selected.insert(part.selected.begin(), part.selected.end());
      requested &= IsRequested(part);
    }
    if (parts.size() < 2 || selected.size() < 2 || requested) continue;
    // What the model's own configuration says is the rule; who differs from it is shown first.
    const std::string& top = parts.begin()->second.variants.front()->module().model_selection();
    Cause cause;
    for (const bool differs : {true, false}) {
      for (const auto& [config, part] : parts) {
        if ((part.selected != std::set<std::string>{top}) != differs) continue;
        if (!differs && cause.variants.empty()) continue;
        cause.variants.insert(cause.variants.end(), part.variants.begin(), part.variants.end());
      }
    }
    if (cause.variants.empty()) continue;
    Finding finding = rules::Describe(cause);
    finding.clear_gates();
    finding.clear_ran();
    std::vector<std::string> odd;
    for (const auto& [config, part] : parts) {
      AddText(
          &finding, config,
          absl::StrCat("requested ", Words(part.requested), ", selected ", Words(part.selected), ", ran ", Words(part.ran)));
      if (part.selected != std::set<std::string>{top})
        odd.push_back(absl::StrCat(config, " has \"", Words(part.selected), "\""));
    }
    const Module& module = cause.first().module();
    finding.set_why(absl::StrCat(module.model_class(), " selects \"", top, "\", and ", JoinWords(odd),
                                 ": set after the parts were made, or before the model's selection reached them."));
    AddAdvice(&finding, "select one for all parts", absl::StrCat("model.set_attn_implementation(\"", top, "\")"));
    AddAdvice(&finding, "or say what each part is meant to run, when the model is made",
              absl::StrCat("attn_implementation={\"text_config\": \"", top, "\", ...}"));
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
