// Rules: what a report says about itself. A rule is a pure function of the Report, in a file of its own; the one list is
// rules.def. Outside the traced process; no state, any thread; a rule cannot fail, it only stays silent.
#pragma once

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "report/report.pb.h"

namespace attntrace {

// Worst first, so that it sorts.
enum class Severity { kError, kWarning, kNote };

// The severity of a finding's or rule's word; an unknown one (of a newer report) counts as a note.
Severity SeverityOf(absl::string_view word);

struct Rule {
  const char* name;      // kebab-case, as in Finding.rule
  const char* severity;  // "error", "warning", "note": the usual one
  const char* title;     // one line
  // Appends one finding per cause. Leaves Finding.rule empty, and severity and title where they are the rule's own.
  void (*run)(const Report& report, std::vector<Finding>* findings);
};

// In the order of rules.def.
absl::Span<const Rule> AllRules();

// Null where there is no such rule.
const Rule* FindRule(absl::string_view name);

// The rule's page, Markdown, built in from docs/rules/<name>.md; empty where there is no such rule.
absl::string_view RulePage(absl::string_view name);

// Replaces report->findings: worst severity first, then most bytes, then the rule's name.
void RunRules(Report* report);

// The figure that findings of one severity are sorted by: the largest number of bytes that the finding names.
int64_t BytesOf(const Finding& finding);

}  // namespace attntrace
