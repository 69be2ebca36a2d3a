#include "report/rules/rules.h"

#include <algorithm>
#include <tuple>

#include "report/bound.h"

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
  BoundFindings(kFindingsLimit * static_cast<size_t>(std::max(report->processes_size(), 1)), report);
}

}  // namespace attntrace
