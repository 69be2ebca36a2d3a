#include "report/bound.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/bound_fold.h"

namespace attntrace {
namespace {

// One way to be smaller; the next is taken only where this one was not enough.
struct Step {
  int shapes;     // of one call path
  int frames;     // of one call path
  size_t text;    // bytes of a gate's words
  size_t places;  // variants that keep their call path
};
constexpr int kAllFrames = 1 << 20;
constexpr size_t kAll = size_t{1} << 30;
constexpr Step kSteps[] = {
    {16, kAllFrames, kAll, kAll},
    {4, 32, kAll, kAll},
    {2, 16, 200, kAll},
    {1, 8, 120, kAll},
    {1, 4, 80, kAll},
    {1, 3, 60, kAll},
    {1, 3, 60, 1024},
    {1, 3, 60, 512},
    {1, 3, 60, 256},
    {1, 3, 60, 64},
};

void CutText(size_t limit, std::string* text) {
  if (text->size() <= limit) return;
  while (limit > 0 && (static_cast<unsigned char>((*text)[limit]) & 0xC0) == 0x80) --limit;  // not inside a letter
  text->resize(limit);
  text->append("...");
}

void CutTexts(size_t limit, Report* report) {
  const auto cut_gates = [&](auto* gates) {
    for (Gate& gate : *gates) CutText(limit, gate.mutable_text());
  };
  for (Variant& variant : *report->mutable_variants()) cut_gates(variant.mutable_gates());
  for (Incident& incident : *report->mutable_incidents()) {
    cut_gates(incident.mutable_gates());
    CutText(4 * limit, incident.mutable_message());
  }
}

// The ids of those that cost most: scores stored before fused, then by bytes.
std::unordered_set<uint32_t> Costliest(const Report& report, size_t count) {
  std::vector<const Variant*> all;
  for (const Variant& variant : report.variants()) all.push_back(&variant);
  std::stable_sort(all.begin(), all.end(), [](const Variant* a, const Variant* b) {
    const bool left = a->path() == "dense", right = b->path() == "dense";
    return left != right ? left : a->peak_bytes() > b->peak_bytes();
  });
  if (all.size() > count) all.resize(count);
  std::unordered_set<uint32_t> ids;
  for (const Variant* variant : all) ids.insert(variant->id());
  return ids;
}

void Take(const Step& step, Report* report) {
  const bool all = step.places >= static_cast<size_t>(report->variants_size());
  const std::unordered_set<uint32_t> placed = all ? std::unordered_set<uint32_t>() : Costliest(*report, step.places);
  FoldVariants(
      step.shapes, [&](const Variant& variant) { return all || placed.contains(variant.id()); }, report);
  CutPaths(step.frames, report);
  if (step.text < kAll) CutTexts(step.text, report);
}

}  // namespace

void BoundReport(size_t limit, Report* report) {
  for (const Step& step : kSteps) {
    if (report->ByteSizeLong() <= limit) return;
    Take(step, report);
  }
}

void BoundFindings(size_t limit, Report* report) {
  size_t bytes = 0;
  int kept = 0;
  for (; kept < report->findings_size(); ++kept) {
    bytes += report->findings(kept).ByteSizeLong();
    if (bytes > limit) break;
  }
  const int dropped = report->findings_size() - kept;
  if (dropped == 0) return;
  report->mutable_findings()->DeleteSubrange(kept, dropped);
  BlindSpot* spot = report->add_blind_spots();
  spot->set_code("findings-dropped");
  spot->set_text("more findings than a report has room for: the worst are there, these are left out");
  spot->set_count(static_cast<uint64_t>(dropped));
}

}  // namespace attntrace
