
#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

const Shape kShape = {4, 8, 1536, 64};
constexpr char kMasked[] =
    "operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'quadratic' count: 2 call_path: 1 ";

Variant& AddMasked(Program* program, const std::string& more, const Shape& mask, const std::string& dtype = "bool") {
  Variant& variant = program->Add(kMasked + more, kShape, kShape, kShape);
  *variant.add_tensors() = MakeTensor("mask", mask, dtype);
  return variant;
}

TEST_CASE("a mask of Sq x Sk: what it says decides the advice", "[mask-dense][fires]") {
  Program program;
  std::string content, code;
  SECTION("plain causal") { content = "plain-causal", code = "attn_mask=None, is_causal=True\n"; }
  SECTION("hides nothing") { content = "all-true", code = "attn_mask=None\n"; }
  SECTION("padding") { content = "padding", code = "attn_mask=keep[:, None, None, :]\n"; }
  SECTION("causal with padding") { content = "causal-padding", code = "attn_mask=None, is_causal=True\n"; }
  SECTION("not read") { content = "unread", code = "attn_mask=None, is_causal=True\n"; }
  SECTION("something else") { content = "other"; }
  const Variant forward =
      AddMasked(&program, "mask_kind: 'bool' mask_bytes: 2359296 mask_content: '" + content + "'", {1, 1, 1536, 1536});
  program.AddBackward(forward, 2, 77);
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  const Finding& finding = findings[0];
  CHECK(finding.rule() == "mask-dense");
  CHECK(finding.severity() == "note");
  CHECK(finding.phase() == "forward,backward");
  CHECK(EvidenceOf(finding, "mask bytes") == 2359296);
  CHECK(EvidenceText(finding, "mask content") == content);
  CHECK_THAT(finding.why(), Contains("The bool mask (1, 1, 1536, 1536) holds 2.25 MiB."));
  CHECK(Codes(finding) == code);
  CHECK(finding.advice_size() >= 1);
}

TEST_CASE("a large mask is a warning, of the largest call", "[mask-dense][fires]") {
  Program program;
  AddMasked(&program, "mask_kind: 'float' mask_bytes: 1000 mask_content: 'plain-causal'", {16, 16}, "float32");
  AddMasked(&program, "mask_kind: 'float' mask_bytes: 67108864 mask_content: 'plain-causal'", {4096, 4096}, "float32");
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity() == "warning");
  CHECK(EvidenceOf(findings[0], "mask bytes") == 67108864);
  CHECK(findings[0].forward_calls() == 4);
}

TEST_CASE("a quadratic path is enough where the mask's shape was not read", "[mask-dense][fires]") {
  Program program;
  program.Add(std::string(kMasked) + "mask_kind: 'bool' mask_bytes: 4096");
  CHECK(program.Findings("mask-dense").size() == 1);
}

TEST_CASE("masks that broadcast, no mask, and masks of dense backends", "[mask-dense][silent]") {
  Program program;
  AddMasked(&program, "mask_kind: 'bool' mask_bytes: 6144 mask_content: 'padding'", {4, 1, 1, 1536});
  AddMasked(&program, "mask_kind: 'bool' mask_bytes: 6144", {4, 1, 1536, 1});
  Variant& expanded = AddMasked(&program, "mask_kind: 'bool' mask_bytes: 6144", {4, 1, 1536, 1536});
  expanded.mutable_tensors(3)->set_strides(2, 0);
  program.Add(
      "operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 1 causal: true call_path: 1",
      kShape, kShape, kShape);
  // create_block_mask's dense grid is nothing that an attention kernel was fed.
  program.Add(
      "operator: 'flex_attention' backend: 'flex-triton' path: 'fused' count: 1 mask_kind: 'block-mask' mask_bytes: 99999999 "
      "call_path: 7",
      kShape, kShape, kShape);
  CHECK(program.Findings().empty());

  AddMasked(&program, "mask_kind: 'bool' mask_bytes: 2359296", {1, 1, 1536, 1536});
  program.report.mutable_variants()->rbegin()->set_backend("math");
  program.report.mutable_variants()->rbegin()->set_path("dense");
  CHECK(program.Findings("mask-dense").empty());
}

}  // namespace
}  // namespace attntrace::testing
