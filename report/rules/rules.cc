#include "report/rules/rules.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/match.h"

namespace attntrace {

#define ATTNTRACE_RULE(function, name, severity, title) void function(const Report& report, std::vector<Finding>* findings);
#include "report/rules/rules.def"
#undef ATTNTRACE_RULE

namespace {

constexpr Rule kRules[] = {
#define ATTNTRACE_RULE(function, name, severity, title) {name, severity, title, &function},
#include "report/rules/rules.def"
#undef ATTNTRACE_RULE
};

Totals Sum(const Report& report) {
  Totals totals;
  for (const Variant& variant : report.variants()) {
    const uint64_t count = variant.count();
    if (variant.phase() == "backward") {
      totals.set_backward_calls(totals.backward_calls() + count);
    } else if (variant.phase() == "recompute") {
      totals.set_recompute_calls(totals.recompute_calls() + count);
    } else {
      totals.set_forward_calls(totals.forward_calls() + count);
    }
    // A kind of path that a newer writer knows and we do not is unknown to us, so that the kinds add up to the calls.
    if (variant.path() == "fused") {
      totals.set_fused(totals.fused() + count);
    } else if (variant.path() == "dense") {
      totals.set_dense(totals.dense() + count);
    } else if (variant.path() == "quadratic") {
      totals.set_quadratic(totals.quadratic() + count);
    } else {
      totals.set_unknown(totals.unknown() + count);
    }
  }
  for (const Process& process : report.processes()) {
    for (const DeviceMemory& memory : process.devices()) {
      if (memory.device() == "cpu") totals.set_peak_cpu_bytes(std::max(totals.peak_cpu_bytes(), memory.peak_bytes()));
      if (absl::StartsWith(memory.device(), "cuda")) {
        totals.set_peak_cuda_bytes(std::max(totals.peak_cuda_bytes(), memory.peak_bytes()));
      }
    }
  }
  return totals;
}

}  // namespace

Severity SeverityOf(absl::string_view word) {
  if (word == "error") return Severity::kError;
  return word == "warning" ? Severity::kWarning : Severity::kNote;
}

absl::Span<const Rule> AllRules() { return kRules; }

const Rule* FindRule(absl::string_view name) {
  const auto* rule = std::find_if(std::begin(kRules), std::end(kRules), [&](const Rule& rule) { return name == rule.name; });
  return rule == std::end(kRules) ? nullptr : rule;
}

int64_t BytesOf(const Finding& finding) {
  int64_t bytes = std::max(finding.forward_peak_bytes(), finding.backward_peak_bytes());
  for (const Evidence& evidence : finding.evidence()) {
    if (evidence.unit() == "bytes") bytes = std::max(bytes, evidence.value());
  }
  return bytes;
}

void RunRules(Report* report) {
  report->clear_findings();
  *report->mutable_totals() = Sum(*report);
  std::vector<Finding> findings;
  for (const Rule& rule : kRules) {
    const size_t before = findings.size();
    rule.run(*report, &findings);
    for (size_t i = before; i < findings.size(); ++i) {
      findings[i].set_rule(rule.name);
      if (findings[i].severity().empty()) findings[i].set_severity(rule.severity);
      if (findings[i].title().empty()) findings[i].set_title(rule.title);
    }
  }
  std::stable_sort(findings.begin(), findings.end(), [](const Finding& a, const Finding& b) {
    const Severity left = SeverityOf(a.severity()), right = SeverityOf(b.severity());
    const int64_t left_bytes = BytesOf(a), right_bytes = BytesOf(b);
    return std::tie(left, right_bytes, a.rule()) < std::tie(right, left_bytes, b.rule());
  });
  for (Finding& finding : findings) *report->add_findings() = std::move(finding);
}

}  // namespace attntrace
