// The table, the pages and the tests agree; the order of findings.
#include "report/rules/rules.h"

#include <filesystem>
#include <set>

#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

std::vector<std::set<std::string>> TagsOfAllTests() {
  std::vector<std::set<std::string>> all;
  for (const auto& test : Catch::getRegistryHub().getTestCaseRegistry().getAllTests()) {
    std::set<std::string>& tags = all.emplace_back();
#if CATCH_VERSION_MAJOR >= 3
    for (const Catch::Tag& tag : test.getTestCaseInfo().tags) tags.insert(std::string(tag.original));
#else
    tags.insert(test.tags.begin(), test.tags.end());
#endif
  }
  return all;
}

TEST_CASE("the table: names are found, and only they") {
  std::set<std::string> names;
  for (const Rule& rule : AllRules()) {
    CHECK(names.insert(rule.name).second);
    CHECK(FindRule(rule.name) == &rule);
    CHECK(std::set<std::string>{"error", "warning", "note"}.count(rule.severity) == 1);
    CHECK(std::string(rule.title).find('\n') == std::string::npos);
  }
  CHECK(names.size() == AllRules().size());
  CHECK(FindRule("sdpa-maths") == nullptr);
  CHECK(FindRule("") == nullptr);
}

TEST_CASE("every rule has its page, in the one shape, and no other page is there") {
  for (const Rule& rule : AllRules()) {
    const std::string page(RulePage(rule.name));
    INFO(rule.name);
    REQUIRE(page.rfind(std::string("# ") + rule.name + "\n\n" + rule.severity, 0) == 0);
    size_t from = 0;
    for (const char* heading : {"\n## What it means\n", "\n## When it fires\n", "\n## When it stays silent\n", "\n## Cause\n",
                                "\n## What to do\n", "\n## Evidence\n", "\n## Example\n"}) {
      INFO(heading);
      const size_t at = page.find(heading, from);
      REQUIRE(at != std::string::npos);
      from = at;
    }
  }
  CHECK(RulePage("no-such-rule").empty());
  for (const auto& entry : std::filesystem::directory_iterator(ATTNTRACE_RULE_PAGES)) {
    INFO(entry.path());
    CHECK(FindRule(entry.path().stem().string()) != nullptr);
  }
}

TEST_CASE("every rule has a test that it fires and one that it stays silent") {
  for (const Rule& rule : AllRules()) {
    bool fires = false, silent = false;
    for (const std::set<std::string>& tags : TagsOfAllTests()) {
      if (tags.count(rule.name) == 0) continue;
      fires |= tags.count("fires") == 1;
      silent |= tags.count("silent") == 1;
    }
    INFO(rule.name);
    CHECK(fires);
    CHECK(silent);
  }
}

TEST_CASE("worst severity first, then most bytes, then the rule's name; running twice changes nothing") {
  Program program;
  program.Merge("blind_spots { code: 'faults' text: 'x' count: 1 }");
  const std::string math =
      "operator: 'aten::scaled_dot_product_attention' backend: 'math' path: 'dense' count: 1 dropout_p: 0.1 ";
  program.Add(math + "call_path: 1 peak_bytes: 10");
  program.Add(math + "call_path: 8 peak_bytes: 30");
  program.Add("operator: 'hand-written' backend: 'eager' path: 'dense' count: 1 call_path: 1 peak_bytes: 20");
  program.Add("operator: 'hand-written' backend: 'eager' path: 'dense' count: 1 call_path: 8 peak_bytes: 30");
  program.Add("operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 1 call_path: 2 " +
                  LlamaModule("sdpa", "None"),
              {1, 4, 8, 16}, {1, 4, 8, 16}, {1, 4, 8, 16});
  std::vector<std::string> order;
  for (const Finding& finding : program.Findings()) order.push_back(finding.rule() + " " + std::to_string(BytesOf(finding)));
  CHECK(order == std::vector<std::string>{"causal-mask-lost 0", "eager-attention 30", "sdpa-math 30", "eager-attention 20",
                                          "sdpa-math 10", "blind-spot 0"});
  const std::string first = program.report.SerializeAsString();
  program.Findings();
  CHECK(program.report.SerializeAsString() == first);
}

TEST_CASE("an empty report has no findings, and indices that lead nowhere do no harm") {
  Program empty;
  empty.report.Clear();
  CHECK(empty.Findings().empty());

  Program torn;
  torn.report.clear_frames();
  torn.Add("operator: 'hand-written' backend: 'eager' path: 'dense' count: 1 call_path: 4");
  torn.Add("operator: 'FlexAttentionAutogradOp' backend: 'flex-dense' path: 'dense' count: 1 call_path: 77");
  torn.Add("operator: 'x' backend: 'math' path: 'dense' count: 1 phase: 'backward' forward: 99");
  CHECK(torn.Findings().size() == 3);
}

}  // namespace
}  // namespace attntrace::testing
