// Rules on what was selected and what ran, and those of a fused forward with a dense rest.
#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

constexpr char kEager[] =
    "operator: 'hand-written' backend: 'eager' path: 'dense' count: 2 score_bytes: 262144 call_path: 3 mask_kind: 'float' ";
constexpr char kSdpa[] =
    "operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 2 causal: true call_path: 2 ";
constexpr char kFlexDense[] =
    "operator: 'FlexAttentionAutogradOp' backend: 'flex-dense' path: 'dense' count: 2 score_bytes: 1000 call_path: 7 ";

TEST_CASE("sdpa is selected, and the class writes attention by hand: one finding", "[backend-not-as-asked][fires]") {
  Program program;
  program.Add(kEager + LlamaModule("sdpa", "Tensor"));
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "backend-not-as-asked");
  CHECK(EvidenceOf(findings[0], "score bytes") == 262144);
  CHECK_THAT(findings[0].why(), Contains("\"sdpa\" is selected on LlamaConfig"));
}

TEST_CASE("maps that will be None are a note", "[backend-not-as-asked][fires]") {
  Program program;
  program.Add(kSdpa + LlamaModule("sdpa", "None", "output_attentions: 'config'"));
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity() == "note");
  CHECK(findings[0].title() == "attention maps were asked for, and will be None");
}

TEST_CASE("what was selected ran, or its name says nothing", "[backend-not-as-asked][silent]") {
  Program program;
  program.Add(kSdpa + LlamaModule("sdpa", "None"));
  program.Add(kEager + LlamaModule("eager", "Tensor"));
  program.Add(kEager + LlamaModule("mine", "Tensor"));
  program.Add(kEager + LlamaModule("sdpa", "Tensor", "output_attentions: 'argument'"));
  program.Add(kFlexDense + LlamaModule("simple_flex_attention", "BlockMask"));
  program.Add("operator: 'flash_attn::_flash_attn_forward' backend: 'flash-attn-2' path: 'fused' count: 1 call_path: 2 " +
              LlamaModule("flash_attention_2", "None"));
  CHECK(program.Findings("backend-not-as-asked").empty());
}

TEST_CASE("a fused forward with a dense backward", "[backward-dense][fires]") {
  Program program;
  const Variant forward =
      program.Add("operator: 'flex_attention' backend: 'flex-triton' path: 'fused' count: 3 peak_bytes: 10 call_path: 8");
  Variant& backward = program.AddBackward(forward, 3, 5000);
  backward.set_path("dense");
  backward.set_kernel_operator("FlexAttentionAutogradOpBackward");
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "backward-dense");
  CHECK(findings[0].backward_peak_bytes() == 5000);
}

TEST_CASE("a fused forward in a function whose backward is written by hand", "[backward-dense][fires]") {
  Program program;
  const std::string selected = GENERATE(std::string("sdpa"), std::string());  // backend-unset and eager-attention are silent
  const Variant forward = program.Add(
      "operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 3 "
      "causal: true call_path: 2 " +
      LlamaModule(selected, "None"));
  Variant& backward = program.AddBackward(forward, 3, 5000);
  backward.set_backend("eager");
  backward.set_path("dense");
  backward.set_kernel_operator("ByHandBackward");
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "backward-dense");
  CHECK(findings[0].phase() == "backward");
  CHECK_THAT(findings[0].why(), Contains("The forward ran flash and stored no scores; its backward, ByHandBackward,"));
}

TEST_CASE("both fused, or both dense", "[backward-dense][silent]") {
  Program program;
  program.AddBackward(
      Variant(program.Add("operator: 'flex_attention' backend: 'flex-triton' path: 'fused' count: 3 call_path: 8")), 3, 50);
  program.AddBackward(Variant(program.Add(kEager + LlamaModule("eager", "Tensor"))), 3, 50);
  CHECK(program.Findings("backward-dense").empty());
}

TEST_CASE("a compiled flex_attention that hit the limit", "[flex-fell-back][fires]") {
  Program program;
  program.Add("operator: 'flex_attention' backend: 'flex-cpp' path: 'fused' count: 2 peak_bytes: 65536 call_path: 10");
  program.Add(std::string(kFlexDense) + "peak_bytes: 2097152 " +
              "facts { key: 'dynamo.recompiles' value: '3' } facts { key: 'dynamo.guard' value: 'size mismatch' } "
              "facts { key: 'dynamo.recompiled' value: 'flex_attention' }");
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "flex-fell-back");
  CHECK(EvidenceOf(findings[0], "fused before") == 2);
  CHECK(EvidenceText(findings[0], "guard") == "size mismatch");
  CHECK_THAT(findings[0].why(),
             Contains("The first 2 calls were fused. A call took 64 KiB at most while fused, and takes up to 2 MiB since."));
  CHECK(EvidenceOf(findings[0], "peak of a call while fused") == 65536);
}

TEST_CASE("dense for other reasons", "[flex-fell-back][silent]") {
  Program program;
  program.Add(kFlexDense);
  program.Add("operator: 'FlexAttentionAutogradOp' backend: 'flex-dense' path: 'dense' count: 2 call_path: 6");
  CHECK(program.Findings("flex-fell-back").empty());
  CHECK(program.Findings("flex-dense").size() == 2);
}

TEST_CASE("switches that keep flex_attention from being fused have their own words", "[flex-dense][fires]") {
  for (const auto& [facts, words] :
       {std::pair("facts { key: 'dynamo.stance' value: 'force_eager' }", "set_stance"),
        std::pair("facts { key: 'flex.debug' value: 'on' }", "debug switch"),
        std::pair("facts { key: 'dynamo.disable' value: 'config' }", "switched off for the process")}) {
    Program program;
    program.Add(std::string(kFlexDense) + facts);
    const std::vector<Finding> findings = program.Findings();
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].rule() == "flex-dense");
    CHECK_THAT(findings[0].why(), Contains(words));
  }
}

}  // namespace
}  // namespace attntrace::testing
