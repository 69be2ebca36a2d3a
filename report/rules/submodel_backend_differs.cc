// submodel-backend-differs: parts of one model run different implementations, and nobody asked for it.
#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "report/rules/rules.h"
#include "report/rules/selection.h"
#include "report/rules/submodels.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

std::string NameOf(const Submodel& part) {
  return part.name().empty() ? part.config_class() : absl::StrCat(part.name(), " (", part.config_class(), ")");
}

// All calls of the odd parts and their backwards, the layer that diverged first in front.
Cause OddCalls(const Report& report, const SplitModel& model) {
  std::set<uint32_t> ids;
  for (const Part& part : model.parts) {
    for (const Variant* variant : part.variants) {
      if (part.odd) ids.insert(variant->id());
    }
  }
  Cause all;
  for (const Cause& cause : FindCauses(
           report, [&](const Variant& variant) { return ids.contains(variant.id()); },
           [](const Variant&) { return std::string(); })) {
    all.variants.insert(all.variants.end(), cause.variants.begin(), cause.variants.end());
  }
  const auto earlier = [](const Variant* a, const Variant* b) {
    if ((a->phase() == "backward") != (b->phase() == "backward")) return b->phase() == "backward";
    return a->first_ns() < b->first_ns();
  };
  std::stable_sort(all.variants.begin(), all.variants.end(), earlier);
  return all;
}

// Of an odd part that runs eager because its class has nothing else.
std::string WithoutSdpa(const Part& part) {
  const std::string& name = part.variants.front()->module().no_sdpa_class();
  return part.odd && part.selected.contains("eager") ? name : "";
}

std::string Why(const SplitModel& model) {
  std::vector<std::string> odd, unable;
  for (const Part& part : model.parts) {
    if (part.odd) odd.push_back(absl::StrCat(NameOf(part.row), " has \"", part.row.selected(), "\""));
    if (const std::string name = WithoutSdpa(part); !name.empty()) unable.push_back(name);
  }
  std::string why;
  if (model.want == model.selection) {
    why = absl::StrCat(model.model_class, " selects \"", model.selection, "\", and ", JoinWords(odd));
  } else {
    why = absl::StrCat("Parts of ", model.model_class, " select \"", model.want, "\", and ", JoinWords(odd));
  }
  if (!unable.empty()) {
    return absl::StrCat(why, ": of ", JoinWords(unable), " Transformers says that it supports no sdpa, and selects eager.");
  }
  return absl::StrCat(why, ": set after the parts were made, or before the model's selection reached them.");
}

// set_attn_implementation came with Transformers 4.54.
bool LacksSetter(const Report& report) {
  const std::vector<absl::string_view> parts = absl::StrSplit(report.environment().transformers(), '.');
  int minor = 0;
  return parts.size() > 1 && parts[0] == "4" && absl::SimpleAtoi(parts[1], &minor) && minor < 54;
}

void Advise(const Report& report, const SplitModel& model, Finding* finding) {
  const bool stuck = std::any_of(model.parts.begin(), model.parts.end(),
                                 [](const Part& part) { return part.odd && !WithoutSdpa(part).empty(); });
  if (stuck) {
    AddAdvice(finding,
              "look for a release whose class supports what the rest runs; asking for it by name says what it supports",
              absl::StrCat("attn_implementation=\"", model.want, "\""));
  } else if (LacksSetter(report)) {
    AddAdvice(finding, "select one for all parts, when the model is made",
              absl::StrCat("attn_implementation=\"", model.want, "\""), model.want == "sdpa" ? Change::kSdpa : Change::kNone);
  } else {
    AddAdvice(finding, "select one for all parts", absl::StrCat("model.set_attn_implementation(\"", model.want, "\")"),
              model.want == "sdpa" ? Change::kSdpa : Change::kNone);
  }
  std::vector<std::string> entries;
  for (const Part& part : model.parts) {
    if (!part.row.config_key().empty())
      entries.push_back(absl::StrCat("\"", part.row.config_key(), "\": \"", *part.selected.begin(), "\""));
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  AddAdvice(
      finding, "or say what each part is to run, where the difference is meant, when the model is made",
      absl::StrCat("attn_implementation={", entries.empty() ? "\"text_config\": ..." : absl::StrJoin(entries, ", "), "}"));
}

}  // namespace

void CheckSubmodelBackendDiffers(const Report& report, std::vector<Finding>* findings) {
  for (const SplitModel& model : FindSplitModels(report)) {
    Finding finding = Describe(OddCalls(report, model));
    finding.clear_gates();
    for (const bool odd : {true, false}) {
      for (const Part& part : model.parts) {
        if (part.odd == odd) *finding.add_submodels() = part.row;
      }
    }
    finding.set_why(Why(model));
    Advise(report, model, &finding);
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
