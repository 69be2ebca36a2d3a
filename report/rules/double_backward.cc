// double-backward: the derivative of a derivative was asked of a kernel that has none.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/incidents.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

std::string CreatedAt(const Report& report, const Incident& incident) {
  Variant at;
  at.set_call_path(incident.created_at());
  return Place(rules::CallSite(report, at));
}

}  // namespace

void CheckDoubleBackward(const Report& report, std::vector<Finding>* findings) {
  for (const Failure& failure : FindFailures(report)) {
    if (failure.fault != Fault::kDerivative) continue;
    Failure shown = failure;
    // The call path of the forward is what leads to the repair: show that where it is known.
    for (size_t i = 1; i < shown.incidents.size(); ++i) {
      if (shown.incidents[i]->kind() == "double-backward") std::swap(shown.incidents[0], shown.incidents[i]);
    }
    const Incident& first = shown.first();
    Finding finding = Describe(report, shown);
    const bool known = first.kind() == "double-backward";
    const std::string forward = known ? Place(rules::CallSite(report, first)) : "";
    const std::string created = known ? CreatedAt(report, first) : "";
    std::string why = known ? absl::StrCat("The forward at ", forward.empty() ? "an unknown place" : forward, " ran ",
                                           first.type(), ", whose backward has no derivative of its own")
                            : "A fused kernel's backward has no derivative of its own";
    if (!created.empty()) absl::StrAppend(&why, "; create_graph=True asked for one at ", created);
    absl::StrAppend(&why, ".");
    const auto math = report.environment().settings().find("sdp.math");
    if (math == report.environment().settings().end() || math->second != "off") {
      absl::StrAppend(&why,
                      " Math, which has one, was allowed but not chosen: allowing it does not switch the fused kernels off.");
    }
    if (!shown.fatal) absl::StrAppend(&why, " The program caught it and went on.");
    finding.set_why(why);
    if (!forward.empty()) AddText(&finding, "forward at", forward);
    if (!created.empty()) AddText(&finding, "graph made at", created);
    AddAdvice(&finding,
              "pin math around the forward alone; it stores the scores, so leave it off where no second derivative is taken",
              "with sdpa_kernel(SDPBackend.MATH): out = F.scaled_dot_product_attention(...)");
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
