// sdpa-math: SDPA ran the math backend, which stores the scores.
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/rules/gates.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

std::string KindsKey(const Variant& variant) {
  std::string key = ByRequest(variant) ? "by request" : "";
  for (const Refusal& refusal : RefusalsOf(variant)) {
    absl::StrAppend(&key, ";", static_cast<int>(refusal.kind), refusal.kind == GateKind::kOther ? refusal.text : "");
  }
  return key;
}

std::string Why(const Variant& variant, const std::vector<Refusal>& refusals, bool by_request) {
  std::vector<std::string> words;
  bool dropout = false, several = false;
  std::set<std::string> backends;
  for (const Refusal& refusal : refusals) {
    words.push_back(InWords(refusal, variant));
    dropout |= refusal.kind == GateKind::kDropout;
    for (const std::string& backend : refusal.backends) several |= !backends.insert(backend).second;
  }
  std::string why = absl::StrJoin(words, "; ");
  if (by_request) why = absl::StrCat("By request: every fused backend was switched off. ", why);
  if (variant.gates().empty()) {
    why = words.empty() ? "What ruled the fused backends out was not read."
                        : absl::StrCat("What ruled the fused backends out was not read; the call shows: ", why);
  }
  if (several && !by_request) absl::StrAppend(&why, ". A backend runs once all of its refusals are gone");
  if (dropout) absl::StrAppend(&why, ". Not a leak: what is kept is freed by the backward pass of each step");
  return why;
}

}  // namespace

void CheckSdpaMath(const Report& report, std::vector<Finding>* findings) {
  for (const Cause& cause : FindCauses(
           report, [](const Variant& variant) { return variant.backend() == "math"; }, KindsKey)) {
    const Variant& first = cause.first();
    const std::vector<Refusal> refusals = RefusalsOf(first);
    const bool by_request = ByRequest(first);
    Finding finding = Describe(cause);
    finding.set_why(Why(first, refusals, by_request));
    // Nothing is stored for an empty sequence, and what was asked for is no loss.
    if (by_request || SeqKv(first) == 0) finding.set_severity("note");
    if (by_request) finding.set_title("scaled_dot_product_attention ran the math backend, by request");
    for (const Refusal& refusal : refusals) Advise(refusal, first, &finding);
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
