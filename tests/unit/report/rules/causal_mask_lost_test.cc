
#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

const Shape kShape = {1, 4, 128, 16};
constexpr char kEager[] = "operator: 'hand-written' backend: 'eager' path: 'dense' count: 1 score_bytes: 262144 call_path: 3 ";
constexpr char kFlash[] =
    "operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 1 call_path: 2 ";
constexpr char kFunction[] = "function: 'transformers.models.llama.modeling_llama:eager_attention_forward'";

TEST_CASE("eager, given no mask", "[causal-mask-lost][fires]") {
  Program program;
  SECTION("nothing selected") {
    program.Add(std::string(kEager) + "layers: [0, 1] " + LlamaModule("", "None", kFunction), kShape, kShape, kShape);
    const std::vector<Finding> findings = program.Findings("causal-mask-lost");
    REQUIRE(findings.size() == 1);
    CHECK(findings[0].severity() == "error");
    CHECK(findings[0].layers_size() == 2);
    CHECK_THAT(findings[0].why(),
               Contains("LlamaAttention is causal, and its attention ran over Sq=128, Sk=128 with no mask") &&
                   Contains("With no implementation selected"));
    CHECK_THAT(Codes(findings[0]), Contains("config._attn_implementation = \"sdpa\""));
  }
  SECTION("eager selected, and the caller passed no mask") {
    program.Add(kEager + LlamaModule("eager", "None", kFunction), kShape, kShape, kShape);
    const std::vector<Finding> findings = program.Findings("causal-mask-lost");
    REQUIRE(findings.size() == 1);
    CHECK_THAT(findings[0].why(), Contains("Eager attention masks only what its mask argument hides"));
  }
}

TEST_CASE("a function of the program's own calls SDPA without is_causal", "[causal-mask-lost][fires]") {
  Program program;
  const Variant forward = program.Add(kFlash + LlamaModule("mine", "None"), kShape, kShape, kShape);
  program.AddBackward(forward, 1, 5);
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "causal-mask-lost");
  CHECK(findings[0].phase() == "forward,backward");
  CHECK_THAT(Codes(findings[0]), Contains("is_causal=True"));
}

TEST_CASE("encoders, cross attention, decoding, masked calls, and masks made inside", "[causal-mask-lost][silent]") {
  Program program;
  const std::string encoder =
      "module { class_name: 'BertSelfAttention' selection_state: 'set' selection: 'sdpa' is_causal: 'no' attention_mask: "
      "'None' }";
  program.Add(kFlash + encoder, kShape, kShape, kShape);
  program.Add(std::string(kFlash) + "module { class_name: 'MultiheadAttention' is_causal: 'unknown' }", kShape, kShape, kShape);
  program.Add(kFlash + LlamaModule("sdpa", "None"), {1, 4, 1, 16}, kShape, kShape);                // decoding
  program.Add(kFlash + LlamaModule("sdpa", "None"), {1, 4, 1, 16}, {1, 4, 1, 16}, {1, 4, 1, 16});  // its first token
  program.Add(kFlash + LlamaModule("sdpa", "None"), kShape, {1, 4, 64, 16}, {1, 4, 64, 16});       // cross, or a cache
  program.Add(std::string(kFlash) + "causal: true " + LlamaModule("sdpa", "None"), kShape, kShape, kShape);
  program.Add(std::string(kFlash) + "mask_kind: 'bool' " + LlamaModule("sdpa", "Tensor"), kShape, kShape, kShape);
  program.Add(std::string(kEager) + "mask_kind: 'float' " + LlamaModule("eager", "Tensor", kFunction), kShape, kShape, kShape);
  program.Add(kEager + LlamaModule("eager", "", kFunction), kShape, kShape, kShape);  // its mask is not known
  program.Add(kEager + LlamaModule("eager", "None"), kShape, kShape, kShape);  // a method of the module: the mask may be inside
  CHECK(program.Findings("causal-mask-lost").empty());
}

TEST_CASE("flex_attention takes no is_causal", "[causal-mask-lost][fires]") {
  const std::string flex =
      "operator: 'FlexAttentionAutogradOp' backend: 'flex-dense' path: 'dense' count: 1 mask_kind: 'none' call_path: 8 ";
  Program program;
  SECTION("its caller was asked for it") {
    program.Add(flex + "causal_asked: true", kShape, kShape, kShape);
    const std::vector<Finding> findings = program.Findings("causal-mask-lost");
    REQUIRE(findings.size() == 1);
    CHECK_THAT(findings[0].why(), Contains("attention_forward of vendor was given is_causal=True"));
    CHECK_THAT(Codes(findings[0]), Contains("create_block_mask") && !Contains("layer.is_causal"));
  }
  SECTION("the module is causal") {
    program.Add(flex + LlamaModule("mine", "None"), kShape, kShape, kShape);
    const std::vector<Finding> findings = program.Findings("causal-mask-lost");
    REQUIRE(findings.size() == 1);
    CHECK_THAT(findings[0].why(), Contains("LlamaAttention is causal") && Contains("no block mask and no score_mod"));
  }
}

TEST_CASE("flex_attention with a mask, a score_mod, or nobody who asked", "[causal-mask-lost][silent]") {
  const std::string flex = "operator: 'FlexAttentionAutogradOp' backend: 'flex-dense' path: 'dense' count: 1 call_path: 8 ";
  Program program;
  program.Add(flex + "mask_kind: 'none' ", kShape, kShape, kShape);
  program.Add(flex + "mask_kind: 'block-mask' causal_asked: true", kShape, kShape, kShape);
  program.Add(flex + "mask_kind: 'none' causal_asked: true score_mod: true", kShape, kShape, kShape);
  program.Add(flex + "mask_kind: 'none' " + LlamaModule("mine", "BlockMask"), kShape, kShape, kShape);  // lost: a mismatch
  program.Add(flex + "mask_kind: 'unknown' causal_asked: true", kShape, kShape, kShape);
  program.Add(flex + "mask_kind: 'none' causal_asked: true", kShape, {1, 4, 64, 16}, {1, 4, 64, 16});
  CHECK(program.Findings("causal-mask-lost").empty());
}

TEST_CASE("GPT-2 masked by itself before Transformers 5", "[causal-mask-lost][silent]") {
  const std::string gpt2 =
      kEager + LlamaModule("eager", "None", "function: 'transformers.models.gpt2.modeling_gpt2:eager_attention_forward'");
  Program old;
  old.Merge("environment { transformers: '4.57.1' }").Add(gpt2, kShape, kShape, kShape);
  CHECK(old.Findings("causal-mask-lost").empty());
  Program now;
  now.Merge("environment { transformers: '5.17.0' }").Add(gpt2, kShape, kShape, kShape);
  CHECK(now.Findings("causal-mask-lost").size() == 1);
}

}  // namespace
}  // namespace attntrace::testing
