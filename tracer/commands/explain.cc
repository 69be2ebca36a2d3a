// attntrace explain [RULE]
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "report/rules/rules.h"
#include "tracer/arguments.h"
#include "tracer/command.h"
#include "tracer/near_names.h"

namespace attntrace {

absl::StatusOr<int> ExplainCommand(const CommandLine& line) {
  std::string rule;
  CLI::App app("Tells what a finding means, its cause and its fixes; without a rule, lists them all.", "attntrace explain");
  app.add_option("RULE", rule, "rule of a finding, for example sdpa-math");
  const absl::StatusOr<bool> go_on = ParseArguments(app, line.arguments);
  if (!go_on.ok()) return go_on.status();
  if (!*go_on) return 0;

  if (rule.empty()) {
    for (const Rule& one : AllRules()) std::printf("%-24s %-8s %s\n", one.name, one.severity, one.title);
    return 0;
  }
  if (FindRule(rule) == nullptr) {
    std::vector<absl::string_view> known;
    for (const Rule& one : AllRules()) known.push_back(one.name);
    const std::string near = DidYouMean(rule, known);
    return absl::InvalidArgumentError(
        absl::StrCat("unknown rule ", rule, near.empty() ? "; attntrace explain lists them" : near));
  }
  const absl::string_view page = RulePage(rule);
  std::fwrite(page.data(), 1, page.size(), stdout);
  return 0;
}

}  // namespace attntrace
