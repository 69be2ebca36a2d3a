#include "report/rules/selection.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/rules/support.h"

namespace attntrace::rules {
namespace {

bool IsFlash(absl::string_view name) {
  return absl::StrContains(name, "flash_attention") || absl::StrContains(name, "flash-attn");
}

bool Takes(absl::string_view name, const PassedMask& mask) {
  if (absl::StartsWith(name, "paged|") || absl::EndsWith(name, "_paged")) return false;  // continuous batching only
  if (mask.type == "BlockMask") return absl::StrContains(name, "flex");
  if (mask.type == "None")
    return name == "sdpa" || IsFlash(name);  // both apply is_causal by themselves; flex would see both ways
  if (mask.rank == 2) return name == "sdpa" || IsFlash(name);
  return name == "sdpa";
}

// The flex_attention of Transformers adds its mask to the scores before 4.50.
bool AddsItsMask(const Report& report, absl::string_view name) {
  const std::vector<absl::string_view> parts = absl::StrSplit(report.environment().transformers(), '.');
  int major = 0, minor = 0;
  return name == "flex_attention" && parts.size() > 1 && absl::SimpleAtoi(parts[0], &major) &&
         absl::SimpleAtoi(parts[1], &minor) && (major < 4 || (major == 4 && minor < 50));
}

}  // namespace

PassedMask MaskOf(const Variant& variant) {
  const Tensor* tensor = FindTensor(variant, "mask");
  return {variant.module().attention_mask(), tensor == nullptr ? 0 : tensor->sizes_size()};
}

PassedMask MaskOf(const Incident& incident) {
  PassedMask mask{incident.module().attention_mask(), 0};
  if (absl::StrContains(incident.message(), "BlockMask")) mask.type = "BlockMask";
  return mask;
}

std::vector<std::string> Registered(const Report& report) {
  std::vector<std::string> names;
  for (const RegisteredAttention& one : report.environment().registered_attention()) names.push_back(one.name());
  return names;
}

std::vector<std::string> RegisteredTaking(const Report& report, const PassedMask& mask) {
  std::vector<std::string> names = Registered(report);
  const auto rejects = [&](const std::string& name) {
    return !Takes(name, mask) || (mask.type == "BlockMask" && AddsItsMask(report, name));
  };
  names.erase(std::remove_if(names.begin(), names.end(), rejects), names.end());
  return names;
}

std::string BestFor(const Report& report, const PassedMask& mask) {
  const std::string usual = mask.type == "BlockMask" ? "flex_attention" : "sdpa";
  const std::vector<std::string> names = RegisteredTaking(report, mask);
  if (names.empty()) return AddsItsMask(report, usual) ? "" : usual;
  if (std::find(names.begin(), names.end(), usual) != names.end()) return usual;
  return names.front();
}

void AdviseSelection(const Report& report, const PassedMask& mask, absl::string_view text, Finding* finding) {
  const std::string best = BestFor(report, mask);
  if (!best.empty()) {
    return AddAdvice(finding, text, absl::StrCat("config._attn_implementation = \"", best, "\""),
                     best == "sdpa" ? Change::kSdpa : Change::kNone);
  }
  AddAdvice(finding,
            absl::StrCat("Transformers ", report.environment().transformers(),
                         " has no implementation that takes a BlockMask (4.50 and later do): register one that calls "
                         "flex_attention, and select it"),
            "ALL_ATTENTION_FUNCTIONS[\"block_mask\"] = attention_forward");
  AddAdvice(finding, "or pass a tensor that is added to the scores, and select one that takes it",
            "config._attn_implementation = \"sdpa\"");
}

void AddRegistered(const Report& report, const PassedMask& mask, Finding* finding) {
  const std::vector<std::string> all = Registered(report), fitting = RegisteredTaking(report, mask);
  if (all.empty()) return;
  AddText(finding, "registered", JoinWords(all));
  AddText(finding, "registered, taking this mask", fitting.empty() ? "none" : JoinWords(fitting));
}

bool IsUnset(const Module& module) {
  return module.selection_state() == "unset" && (!module.function().empty() || module.class_module().empty() ||
                                                 absl::StartsWith(module.class_module(), "transformers."));
}

bool FailedUnselected(const Failure& failure) { return failure.fault == Fault::kMask && IsUnset(failure.first().module()); }

Family FamilyOfName(const std::string& name) {
  if (name == "eager") return Family::kEager;
  if (name == "sdpa" || absl::EndsWith(name, "|sdpa")) return Family::kSdpa;
  if (absl::StrContains(name, "flex")) return Family::kFlex;
  return IsFlash(name) ? Family::kFlash : Family::kUnknown;
}

Family FamilyOfBackend(const Variant& variant) {
  const std::string& backend = variant.backend();
  if (absl::StartsWith(backend, "flex-")) return Family::kFlex;
  if (absl::StartsWith(backend, "flash-attn")) return Family::kFlash;
  if (backend == "eager") return Family::kEager;
  return IsSdpa(variant) ? Family::kSdpa : Family::kUnknown;
}

}  // namespace attntrace::rules
