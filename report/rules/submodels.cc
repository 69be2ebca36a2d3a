#include "report/rules/submodels.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/rules/selection.h"
#include "report/rules/support.h"

namespace attntrace::rules {
namespace {

// What executed, in the words of a selection: "eager", "sdpa (flash)".
std::string RanWords(const Variant& variant) {
  switch (FamilyOfBackend(variant)) {
    case Family::kSdpa:
      return absl::StrCat("sdpa (", variant.backend(), ")");
    case Family::kFlex:
      return absl::StrCat("flex_attention (", variant.backend(), ")");
    default:
      return variant.backend();
  }
}

struct Reading {
  Part part;
  std::set<std::string> requested, ran;
  bool by_dict = false, by_call = false, by_config = false;
};

Part Finished(const Reading& reading) {
  Part part = reading.part;
  part.row.set_requested(absl::StrJoin(reading.requested, ","));
  part.row.set_selected(absl::StrJoin(part.selected, ","));
  part.row.set_ran(absl::StrJoin(reading.ran, ", "));
  for (const Variant* variant : part.variants) part.row.set_calls(part.row.calls() + variant->count());
  // Each layer has what was asked for by the part's own name. A call that set one name for all would leave no difference.
  part.odd = !reading.by_call && !((reading.by_dict || reading.by_config) && part.selected == reading.requested);
  return part;
}

// What the model's own configuration says is the rule. Where that is eager and nobody asked for it, the parts that are fused
// are.
std::string Wanted(const std::string& top, const std::vector<Part>& parts) {
  if (FamilyOfName(top) != Family::kEager) return top;
  std::string fused;
  for (const Part& part : parts) {
    if (part.row.requested() == top) return top;
    for (const std::string& selection : part.selected) {
      if (fused.empty() && FamilyOfName(selection) != Family::kEager) fused = selection;
    }
  }
  return fused.empty() ? top : fused;
}

}  // namespace

std::vector<SplitModel> FindSplitModels(const Report& report) {
  // Models of one class are told apart by their own selection: a program that compares implementations has one after the other.
  std::map<std::string, size_t> known;
  std::vector<SplitModel> models;
  std::vector<std::vector<Reading>> readings;
  for (const Variant& variant : report.variants()) {
    const Module& module = variant.module();
    if (variant.phase() == "backward" || module.selection_state() != "set" || module.model_class().empty()) continue;
    const std::string model = absl::StrCat(variant.process(), "\n", module.model_class(), "\n", module.model_selection());
    const auto [at, fresh] = known.try_emplace(model, models.size());
    if (fresh) {
      models.push_back({module.model_class(), module.model_selection(), "", {}});
      readings.emplace_back();
    }
    std::vector<Reading>& parts = readings[at->second];
    auto part = std::find_if(parts.begin(), parts.end(), [&](const Reading& one) {
      return one.part.row.config_class() == module.config_class() && one.part.row.name() == module.part();
    });
    if (part == parts.end()) {
      part = parts.insert(parts.end(), Reading());
      part->part.row.set_name(module.part());
      part->part.row.set_config_class(module.config_class());
      part->part.row.set_config_key(module.part_config());
    }
    part->part.variants.push_back(&variant);
    part->part.selected.insert(module.selection());
    part->ran.insert(RanWords(variant));
    if (!module.requested().empty()) part->requested.insert(module.requested());
    part->by_dict |= module.requested_by() == "dict";
    part->by_call |= module.requested_by() == "call";
    // What the class filled in by itself reads like what was set.
    part->by_config |= module.requested_by() == "config" && module.no_sdpa_class().empty();
  }
  std::vector<SplitModel> split;
  for (size_t i = 0; i < models.size(); ++i) {
    SplitModel& model = models[i];
    std::set<std::string> selected;
    for (const Reading& reading : readings[i]) {
      model.parts.push_back(Finished(reading));
      selected.insert(reading.part.selected.begin(), reading.part.selected.end());
    }
    if (model.parts.size() < 2 || selected.size() < 2) continue;
    model.want = Wanted(model.selection, model.parts);
    bool any = false;
    for (Part& part : model.parts) {
      part.odd = part.odd && part.selected != std::set<std::string>{model.want};
      part.row.set_differs(part.odd);
      any |= part.odd;
    }
    if (any) split.push_back(std::move(model));
  }
  return split;
}

std::set<uint32_t> OddVariants(const Report& report) {
  std::set<uint32_t> ids;
  for (const SplitModel& model : FindSplitModels(report)) {
    for (const Part& part : model.parts) {
      for (const Variant* variant : part.variants) {
        if (part.odd) ids.insert(variant->id());
      }
    }
  }
  std::set<uint32_t> backwards;
  for (const Variant& variant : report.variants()) {
    if (variant.phase() == "backward" && ids.contains(variant.forward())) backwards.insert(variant.id());
  }
  ids.merge(backwards);
  return ids;
}

}  // namespace attntrace::rules
