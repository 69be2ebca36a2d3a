#include "absl/strings/str_cat.h"
#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

const Shape kShape = {1, 4, 128, 16};
constexpr char kEager[] =
    "operator: 'hand-written' backend: 'eager' path: 'dense' count: 2 score_bytes: 262144 peak_bytes: 600000 call_path: 3 "
    "layers: 0 ";
constexpr char kRegistered[] =
    "environment { transformers: '5.17.0' registered_attention { name: 'flash_attention_2' } registered_attention { name: "
    "'flex_attention' } "
    "registered_attention { name: 'paged|sdpa' } registered_attention { name: 'sdpa' } registered_attention { name: "
    "'simple_flex_attention' } }";
constexpr char kFunction[] = "function: 'transformers.models.llama.modeling_llama:eager_attention_forward'";

TEST_CASE("an encoder layer with nothing selected: named, not wrong", "[backend-unset][fires]") {
  Program program;
  program.Merge(kRegistered);
  const Variant forward = program.Add(
      std::string(kEager) +
          "module { class_name: 'BertSelfAttention' config_class: 'BertConfig' selection_state: 'unset' is_causal: 'no' "
          "attention_mask: 'None' " +
          kFunction + " }",
      kShape, kShape, kShape);
  program.AddBackward(forward, 2, 800000);
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  const Finding& finding = findings[0];
  CHECK(finding.rule() == "backend-unset");
  CHECK(finding.severity() == "warning");
  CHECK(finding.phase() == "forward,backward");
  CHECK(EvidenceText(finding, "config class") == "BertConfig");
  CHECK(EvidenceText(finding, "layer class") == "BertSelfAttention");
  CHECK(EvidenceText(finding, "registered, taking this mask") == "flash_attention_2 and sdpa");
  CHECK(EvidenceOf(finding, "score bytes") == 262144);
  CHECK_THAT(finding.why(), Contains("BertConfig._attn_implementation is None") && Contains("ran eager instead."));
  CHECK(Codes(finding) == "config._attn_implementation = \"sdpa\"\n");
}

TEST_CASE("where the layers were built is said once a place", "[backend-unset][fires]") {
  Program program;
  program.Merge(kRegistered);
  const auto add = [&](uint32_t built_at) {
    program.Add(kEager + LlamaModule("", "Tensor", absl::StrCat("built_at: ", built_at)), kShape, kShape, kShape);
  };
  SECTION("the user's lines, also of what a library built for the user") {
    for (const uint32_t path : {kUserCall, kSdpaInLlama, kSdpaRecomputed}) add(path);  // the first two from train.py:88
    const std::vector<Finding> findings = program.Findings("backend-unset");
    REQUIRE(findings.size() == 1);
    CHECK(EvidenceText(findings[0], "built") == "train.py:88, train.py:95");
  }
  SECTION("the library's, where there is no user's") {
    program.Merge("call_paths { frames: [1] call_site: 0 user: -1 }");
    add(static_cast<uint32_t>(program.report.call_paths_size()));
    CHECK(EvidenceText(program.Findings("backend-unset")[0], "built") == "modeling_llama.py:280");
  }
  SECTION("nothing, where that was not seen or the report is not whole") {
    for (const uint32_t path : {0u, 1000u}) add(path);
    CHECK(EvidenceText(program.Findings("backend-unset")[0], "built").empty());
  }
}

TEST_CASE("a causal layer without a mask is wrong as well", "[backend-unset][fires]") {
  Program program;
  program.Merge(kRegistered);
  program.Add(kEager + LlamaModule("", "None", kFunction), kShape, kShape, kShape);
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].rule() == "backend-unset");
  CHECK(findings[0].severity() == "error");
  CHECK_THAT(findings[0].why(), Contains("the result is wrong as well (causal-mask-lost)"));
  CHECK(findings[1].rule() == "causal-mask-lost");
}

TEST_CASE("the mask that was passed decides which implementation is advised", "[backend-unset][fires]") {
  Program program;
  program.Merge(kRegistered);
  std::string fitting, code;
  SECTION("BlockMask: flex only") {
    program.Add(kEager + LlamaModule("", "BlockMask", kFunction), kShape, kShape, kShape);
    fitting = "flex_attention and simple_flex_attention", code = "config._attn_implementation = \"flex_attention\"\n";
  }
  SECTION("4-D tensor: sdpa") {
    Variant& variant =
        program.Add(std::string(kEager) + "mask_kind: 'float' " + LlamaModule("", "Tensor", kFunction), kShape, kShape, kShape);
    *variant.add_tensors() = MakeTensor("mask", {1, 1, 128, 128});
    fitting = "sdpa", code = "config._attn_implementation = \"sdpa\"\n";
  }
  SECTION("2-D tensor: flash too") {
    Variant& variant =
        program.Add(std::string(kEager) + "mask_kind: 'bool' " + LlamaModule("", "Tensor", kFunction), kShape, kShape, kShape);
    *variant.add_tensors() = MakeTensor("mask", {1, 128}, "bool");
    fitting = "flash_attention_2 and sdpa", code = "config._attn_implementation = \"sdpa\"\n";
  }
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity() == "warning");
  CHECK(EvidenceText(findings[0], "registered, taking this mask") == fitting);
  CHECK(Codes(findings[0]) == code);
}

TEST_CASE("Transformers before 4.50: its flex_attention takes no BlockMask, another may", "[backend-unset][fires]") {
  Program program;
  program.Merge(kRegistered);
  program.Merge("environment { transformers: '4.48.3' }");
  program.Add(kEager + LlamaModule("", "BlockMask", kFunction), kShape, kShape, kShape);
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(EvidenceText(findings[0], "registered, taking this mask") == "simple_flex_attention");
  CHECK(Codes(findings[0]) == "config._attn_implementation = \"simple_flex_attention\"\n");
}

TEST_CASE("no implementation that takes the BlockMask: one is to be registered", "[backend-unset][fires]") {
  Program program;
  program.Merge(
      "environment { transformers: '4.49.0' registered_attention { name: 'flex_attention' } "
      "registered_attention { name: 'sdpa' } }");
  program.Add(kEager + LlamaModule("", "BlockMask", kFunction), kShape, kShape, kShape);
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(EvidenceText(findings[0], "registered, taking this mask") == "none");
  CHECK_THAT(findings[0].advice(0).text(), Contains("has no implementation that takes a BlockMask"));
  CHECK(Codes(findings[0]) ==
        "ALL_ATTENTION_FUNCTIONS[\"block_mask\"] = attention_forward\nconfig._attn_implementation = \"sdpa\"\n");
}

TEST_CASE("selected layers, other modules, and unset layers that ran fused", "[backend-unset][silent]") {
  Program program;
  program.Add(std::string(kEager) + "mask_kind: 'float' " + LlamaModule("eager", "Tensor"), kShape, kShape, kShape);
  program.Add(std::string(kEager) + "module { class_name: 'Mine' selection_state: 'not-attention' }", kShape, kShape, kShape);
  program.Add(
      "operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 1 causal: true call_path: 2 " +
          LlamaModule("", "None"),
      kShape, kShape, kShape);
  CHECK(program.Findings("backend-unset").empty());
}

}  // namespace
}  // namespace attntrace::testing
