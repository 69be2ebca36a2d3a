
#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

const Shape kShape = {1, 8, 512, 64};

Variant& AddCall(Program* program, const std::string& phase, const std::string& backend, Path path,
                 const std::string& layers = "[0, 1]") {
  return program->Add(
      "operator: 'aten::scaled_dot_product_attention' count: 2 causal: true peak_bytes: 500 score_bytes: 8388608 call_path: " +
          std::to_string(path) + " phase: '" + phase + "' backend: '" + backend + "' layers: " + layers + " path: '" +
          (backend == "math" ? "dense" : "fused") + "' " + LlamaModule("sdpa", "None"),
      kShape, kShape, kShape);
}

TEST_CASE("the recompute took math after a flash forward", "[recompute-differs][fires]") {
  Program program;
  AddCall(&program, "forward", "flash", kSdpaInLlama);
  const Variant again = AddCall(&program, "recompute", "math", kSdpaRecomputed);
  program.AddBackward(again, 2, 9000);
  const std::vector<Finding> findings = program.Findings("recompute-differs");
  REQUIRE(findings.size() == 1);
  CHECK(EvidenceOf(findings[0], "score bytes") == 8388608);
  CHECK(findings[0].severity() == "warning");
  CHECK(findings[0].phase() == "recompute,backward");
  CHECK(findings[0].variants(0) == again.id());
  CHECK(EvidenceText(findings[0], "forward ran") == "flash");
  CHECK(EvidenceText(findings[0], "recompute ran") == "math");
  CHECK(EvidenceOf(findings[0], "peak of the first forward") == 500);
  CHECK_THAT(findings[0].why(), Contains("The forward ran flash, its recompute in the backward pass ran math"));
}

TEST_CASE("a fused recompute stores no scores, whatever block of their size it allocated", "[recompute-differs][fires]") {
  Program program;
  AddCall(&program, "forward", "math", kSdpaInLlama);
  AddCall(&program, "recompute", "flash", kSdpaRecomputed);
  const std::vector<Finding> findings = program.Findings("recompute-differs");
  REQUIRE(findings.size() == 1);
  CHECK(EvidenceOf(findings[0], "score bytes") == -1);
  CHECK(findings[0].ran().find("scores") == std::string::npos);
}

TEST_CASE("the same backend again, or no forward to compare with", "[recompute-differs][silent]") {
  Program program;
  AddCall(&program, "recompute", "math", kSdpaRecomputed);
  CHECK(program.Findings("recompute-differs").empty());
  AddCall(&program, "forward", "flash", kSdpaInLlama);
  CHECK(program.Findings("recompute-differs").size() == 1);
  AddCall(&program, "forward", "math", kSdpaInLlama);  // one of the two is what it repeats
  CHECK(program.Findings("recompute-differs").empty());
}

TEST_CASE("forwards of other layers and other shapes prove nothing", "[recompute-differs][silent]") {
  Program program;
  AddCall(&program, "recompute", "math", kSdpaRecomputed);
  AddCall(&program, "forward", "flash", kSdpaInLlama, "[2, 3]");
  AddCall(&program, "forward", "flash", kSdpaInLlama).mutable_tensors(0)->set_sizes(2, 64);
  AddCall(&program, "forward", "flash", kUserCall);
  CHECK(program.Findings("recompute-differs").empty());
}

}  // namespace
}  // namespace attntrace::testing
