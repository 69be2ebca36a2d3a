// How variants become causes, and the part of a finding that every rule shares.
#include <algorithm>
#include <map>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "report/rules/support.h"
#include "report/text_units.h"

namespace attntrace::rules {
namespace {

std::string FrameKey(const Frame* frame) {
  return frame == nullptr ? "-" : absl::StrCat(frame->file(), ":", frame->line(), ":", frame->function());
}

int64_t Weight(const Variant& variant) { return std::max(variant.peak_bytes(), variant.score_bytes()); }

// Forward before recompute before backward, then the heaviest: what is shown first is the forward that costs most.
bool ShownBefore(const Variant* a, const Variant* b) {
  static const auto rank = [](const Variant& variant) {
    return variant.phase() == "backward" ? 2 : variant.phase() == "recompute" ? 1 : 0;
  };
  if (rank(*a) != rank(*b)) return rank(*a) < rank(*b);
  if (Weight(*a) != Weight(*b)) return Weight(*a) > Weight(*b);
  return a->id() < b->id();
}

std::string Ran(const Cause& cause) {
  const Variant& first = cause.first();
  std::string ran = absl::StrCat(first.operator_(), ", ", first.backend());
  const std::string tensors = DescribeTensors(first), scores = DescribeScores(first);
  if (!tensors.empty()) absl::StrAppend(&ran, ": ", tensors);
  if (!scores.empty()) absl::StrAppend(&ran, tensors.empty() ? ": " : "; ", scores);
  std::set<std::string> shapes;
  for (const Variant* variant : cause.variants) {
    if (variant->phase() == first.phase()) shapes.insert(DescribeTensors(*variant));
  }
  if (first.shapes_folded()) {
    absl::StrAppend(&ran, " (one of many shapes, Sk ", first.min_seq_kv(), " to ", first.max_seq_kv(), ")");
  } else if (shapes.size() > 1) {
    absl::StrAppend(&ran, " (largest of ", shapes.size(), " shapes)");
  }
  return ran;
}

}  // namespace

std::vector<Cause> FindCauses(const Report& report, absl::FunctionRef<bool(const Variant&)> picks,
                              absl::FunctionRef<std::string(const Variant&)> key) {
  const auto where = [&](const Variant& variant) {
    return absl::StrCat(FrameKey(CallSite(report, variant)), "\n", ModuleClass(variant), "\n", variant.backend(), "\n",
                        key(variant));
  };
  std::vector<Cause> causes;
  absl::flat_hash_map<std::string, size_t> by_line, by_site;
  absl::flat_hash_map<uint32_t, size_t> by_id;
  const auto put = [&](const Variant& variant, const std::string& line) {
    const auto [entry, fresh] = by_line.try_emplace(line, causes.size());
    if (fresh) causes.emplace_back();
    causes[entry->second].variants.push_back(&variant);
    by_id[variant.id()] = entry->second;
    return entry->second;
  };
  // Phases in the order in which one leans on the other.
  for (const Variant& variant : report.variants()) {
    if (variant.phase() == "backward" || variant.phase() == "recompute" || !picks(variant)) continue;
    const std::string site = where(variant);
    by_site.try_emplace(site, put(variant, absl::StrCat(FrameKey(UserLine(report, variant)), "\n", site)));
  }
  for (const Variant& variant : report.variants()) {
    if (variant.phase() != "recompute" || !picks(variant)) continue;
    const std::string site = where(variant);
    if (const auto forward = by_site.find(site); forward != by_site.end()) {
      causes[forward->second].variants.push_back(&variant);
      by_id[variant.id()] = forward->second;
    } else {
      put(variant, site);
    }
  }
  for (const Variant& variant : report.variants()) {
    if (variant.phase() != "backward") continue;
    if (const auto forward = by_id.find(variant.forward()); forward != by_id.end()) {
      causes[forward->second].variants.push_back(&variant);
    } else if (picks(variant)) {
      put(variant, absl::StrCat(FrameKey(UserLine(report, variant)), "\n", where(variant)));
    }
  }
  for (Cause& cause : causes) std::sort(cause.variants.begin(), cause.variants.end(), ShownBefore);
  std::stable_sort(causes.begin(), causes.end(),
                   [](const Cause& a, const Cause& b) { return a.first().id() < b.first().id(); });
  return causes;
}

Finding Describe(const Cause& cause) {
  Finding finding;
  std::set<int32_t> layers;
  std::set<std::string> gates;
  int64_t score = 0, kept = 0;
  for (const Variant* variant : cause.variants) {
    finding.add_variants(variant->id());
    layers.insert(variant->layers().begin(), variant->layers().end());
    AddGates(variant->gates(), &gates, &finding);
    if (variant->path() == "dense") score = std::max(score, variant->score_bytes());
    if (variant->phase() == "backward") {
      finding.set_backward_calls(finding.backward_calls() + variant->count());
      finding.set_backward_peak_bytes(std::max(finding.backward_peak_bytes(), variant->peak_bytes()));
      continue;
    }
    kept = std::max(kept, variant->kept_bytes());
    finding.set_forward_peak_bytes(std::max(finding.forward_peak_bytes(), variant->peak_bytes()));
    if (variant->phase() == "recompute") {
      finding.set_recompute_calls(finding.recompute_calls() + variant->count());
    } else {
      finding.set_forward_calls(finding.forward_calls() + variant->count());
    }
  }
  std::string phases;
  for (const auto& [count, phase] :
       {std::pair(finding.forward_calls(), "forward"), std::pair(finding.recompute_calls(), "recompute"),
        std::pair(finding.backward_calls(), "backward")}) {
    if (count > 0) absl::StrAppend(&phases, phases.empty() ? "" : ",", phase);
  }
  finding.set_phase(phases);
  finding.mutable_layers()->Add(layers.begin(), layers.end());
  finding.set_ran(Ran(cause));
  AddCount(&finding, "calls",
           static_cast<int64_t>(finding.forward_calls() + finding.recompute_calls() + finding.backward_calls()));
  if (score > 0) AddBytes(&finding, "score bytes", score);
  if (finding.forward_peak_bytes() > 0) AddBytes(&finding, "peak forward", finding.forward_peak_bytes());
  if (finding.backward_peak_bytes() > 0) AddBytes(&finding, "peak backward", finding.backward_peak_bytes());
  if (kept > 0) AddBytes(&finding, "kept after forward", kept);
  return finding;
}

}  // namespace attntrace::rules
