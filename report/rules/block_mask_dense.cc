// block-mask-dense: create_block_mask, not compiled, evaluated its mask on the full grid.
#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "report/rules/incidents.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"
#include "report/text_units.h"

namespace attntrace {
namespace {

// Of a short sequence the grid is smaller than what a compile of it takes.
constexpr int64_t kWorthTelling = 32 << 20;

}  // namespace

void CheckBlockMaskDense(const Report& report, std::vector<Finding>* findings) {
  using namespace rules;
  std::map<std::string, std::vector<const Incident*>> places;
  for (const Incident& incident : report.incidents()) {
    if (incident.kind() != "block-mask" || incident.peak_bytes() < kWorthTelling) continue;
    places[absl::StrCat(Place(rules::CallSite(report, incident)), "\n", Place(UserLine(report, incident)))].push_back(
        &incident);
  }
  for (auto& [place, incidents] : places) {
    std::stable_sort(incidents.begin(), incidents.end(),
                     [](const Incident* a, const Incident* b) { return a->peak_bytes() > b->peak_bytes(); });
    const Incident& largest = *incidents.front();
    Finding finding;
    uint64_t times = 0;
    for (const Incident* incident : incidents) {
      finding.add_incidents(incident->id());
      times += incident->count();
    }
    finding.set_phase("forward");
    finding.set_why(absl::StrCat("create_block_mask evaluates its mask function for every query and key, a bool tensor of ",
                                 FormatBytes(largest.bytes()),
                                 " here, and keeps a few bytes for each block of 128 x 128 of it. ",
                                 "Compiled, it never makes that tensor."));
    AddCount(&finding, "times", static_cast<int64_t>(times));
    AddBytes(&finding, "full grid", largest.bytes());
    AddBytes(&finding, "peak", largest.peak_bytes());
    AddBytes(&finding, "BlockMask, about", std::max<int64_t>(largest.bytes() / (128 * 128), 1) * 16);
    AddAdvice(&finding, "compile it once, at module scope", "create_block_mask = torch.compile(create_block_mask)");
    if (times > 1) AddAdvice(&finding, "or build the mask once for each shape and keep it");
    AddAdvice(&finding, "where the mask is the same for all rows and heads, say so: the grid is then one for all",
              "B=None, H=None");
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
