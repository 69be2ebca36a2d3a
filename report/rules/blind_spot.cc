// blind-spot: what the report cannot speak of, one finding a code.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

// Texts shown of one code; more are counted.
constexpr size_t kTexts = 3;

struct Seen {
  int64_t count = 0;
  std::vector<std::string> texts;
  std::set<uint32_t> processes;
};

}  // namespace

void CheckBlindSpot(const Report& report, std::vector<Finding>* findings) {
  std::map<std::string, Seen> codes;
  for (const BlindSpot& spot : report.blind_spots()) {
    Seen& seen = codes[spot.code()];
    seen.count += static_cast<int64_t>(std::max<uint64_t>(spot.count(), 1));
    seen.processes.insert(spot.process());
    if (std::find(seen.texts.begin(), seen.texts.end(), spot.text()) == seen.texts.end()) seen.texts.push_back(spot.text());
  }
  for (const auto& [code, seen] : codes) {
    Finding finding;
    finding.set_title(absl::StrCat("something could not be seen: ", code));
    const size_t shown = std::min(kTexts, seen.texts.size());
    std::string why = absl::StrJoin(seen.texts.begin(), seen.texts.begin() + static_cast<std::ptrdiff_t>(shown), "; ");
    if (shown < seen.texts.size()) absl::StrAppend(&why, "; and ", seen.texts.size() - shown, " more");
    finding.set_why(why);
    rules::AddText(&finding, "code", code);
    rules::AddCount(&finding, "count", seen.count);
    rules::AddCount(&finding, "processes", static_cast<int64_t>(seen.processes.size()));
    rules::AddAdvice(&finding, "see what is missing on this machine", "attntrace doctor");
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
