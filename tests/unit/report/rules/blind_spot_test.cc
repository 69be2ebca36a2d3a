
#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

TEST_CASE("one finding a code, over processes", "[blind-spot][fires]") {
  Program program;
  program.Merge(
      "blind_spots { code: 'declined' text: 'no agent for PyTorch 2.9.1' process: 0 count: 2 }"
      "blind_spots { code: 'declined' text: 'no agent for PyTorch 2.9.1' process: 1 }"
      "blind_spots { code: 'log-full' text: '3 definitions dropped' process: 1 count: 3 }");
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].rule() == "blind-spot");
  CHECK(findings[0].severity() == "note");
  CHECK(EvidenceText(findings[0], "code") == "declined");
  CHECK(EvidenceOf(findings[0], "count") == 3);
  CHECK(EvidenceOf(findings[0], "processes") == 2);
  CHECK(findings[0].why() == "no agent for PyTorch 2.9.1");
  CHECK(findings[1].why() == "3 definitions dropped");
}

TEST_CASE("many texts are cut short and counted", "[blind-spot][fires]") {
  Program program;
  for (const char* text : {"a", "b", "c", "d", "e"}) {
    program.Merge(std::string("blind_spots { code: 'faults' text: '") + text + "' count: 1 }");
  }
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].why() == "a; b; c; and 2 more");
}

TEST_CASE("nothing was missed", "[blind-spot][silent]") {
  Program program;
  program.Add("operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 1 call_path: 1");
  CHECK(program.Findings().empty());
}

}  // namespace
}  // namespace attntrace::testing
