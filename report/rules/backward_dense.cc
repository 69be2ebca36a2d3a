// backward-dense: the forward ran fused, and its backward stored scores.
#include "absl/strings/str_cat.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

const Variant* ForwardOf(const Report& report, const Variant& variant) {
  for (const Variant& one : report.variants()) {
    if (variant.forward() != 0 && one.id() == variant.forward()) return &one;
  }
  return nullptr;
}

}  // namespace

void CheckBackwardDense(const Report& report, std::vector<Finding>* findings) {
  using namespace rules;
  const auto picks = [&](const Variant& variant) {
    if (variant.phase() != "backward" || variant.path() != "dense") return false;
    const Variant* forward = ForwardOf(report, variant);
    return forward != nullptr && (forward->path() == "fused" || forward->path() == "quadratic");
  };
  for (const Cause& cause : FindCauses(report, picks, [](const Variant&) { return std::string(); })) {
    const Variant& first = cause.first();
    Finding finding = Describe(cause);
    const Variant& forward = *ForwardOf(report, first);
    finding.set_why(absl::StrCat("The forward ran ", forward.backend(), " and stored no scores; its backward, ",
                                 first.kernel_operator(), ", computed them again and stored them."));
    AddText(&finding, "forward", forward.backend());
    AddAdvice(&finding,
              "give the backward a fused kernel too: let autograd take the forward kernel's own, or call an implementation "
              "that has both");
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
