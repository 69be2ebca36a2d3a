
#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

const Shape kShape = {2, 4, 128, 16};
constexpr char kEager[] =
    "operator: 'hand-written' backend: 'eager' path: 'dense' count: 3 score_bytes: 524288 peak_bytes: 900000 ";

Finding Single(Program* program) {
  const std::vector<Finding> findings = program->Findings();
  REQUIRE(findings.size() == 1);
  REQUIRE(findings[0].rule() == "eager-attention");
  CHECK(findings[0].severity() == "warning");
  CHECK(EvidenceOf(findings[0], "score bytes") == 524288);
  return findings[0];
}

TEST_CASE("nn.MultiheadAttention with its default need_weights", "[eager-attention][fires]") {
  Program program;
  const Variant forward =
      program.Add(std::string(kEager) +
                      "call_path: 4 module { class_name: 'MultiheadAttention' selection_state: 'not-attention' "
                      "training: 'yes' }",
                  kShape, kShape, kShape);
  program.AddBackward(forward, 3, 1200000);
  const Finding finding = Single(&program);
  CHECK(finding.phase() == "forward,backward");
  CHECK(finding.backward_peak_bytes() == 1200000);
  CHECK_THAT(finding.why(), Contains("need_weights=True"));
  CHECK(Codes(finding) == "need_weights=False\n");
}

TEST_CASE("Transformers: eager selected, maps asked for, selection ignored", "[eager-attention][fires]") {
  Program program;
  const std::string call = std::string(kEager) + "call_path: 3 mask_kind: 'float' layers: [0, 1] ";
  SECTION("eager selected") {
    program.Add(call + LlamaModule("eager", "Tensor"), kShape, kShape, kShape);
    const Finding finding = Single(&program);
    CHECK_THAT(finding.why(), Contains("LlamaConfig._attn_implementation is \"eager\""));
    CHECK(Codes(finding) == "attn_implementation=\"sdpa\"\n");
    CHECK(finding.layers_size() == 2);
  }
  SECTION("eager selected on the model, whose layers carry no config") {
    program.Add(call +
                    "module { class_name: 'BertSelfAttention' class_module: 'transformers.models.bert.modeling_bert' "
                    "model_class: 'BertModel' selection_state: 'not-attention' model_selection: 'eager' }",
                kShape, kShape, kShape);
    const Finding finding = Single(&program);
    CHECK_THAT(finding.why(), Contains("BertModel.config._attn_implementation is \"eager\""));
    CHECK(Codes(finding) == "attn_implementation=\"sdpa\"\n");
  }
  SECTION("maps asked for in the call") {
    program.Add(call + LlamaModule("eager", "Tensor", "output_attentions: 'argument'"), kShape, kShape, kShape);
    const Finding finding = Single(&program);
    CHECK_THAT(finding.why(), Contains("By request: output_attentions=True, passed to the call"));
    CHECK(Codes(finding) == "output_attentions=False\n");
  }
  SECTION("maps asked for in the config") {
    program.Add(call + LlamaModule("eager", "Tensor", "output_attentions: 'config'"), kShape, kShape, kShape);
    const Finding finding = Single(&program);
    CHECK_THAT(finding.why(), Contains("set in the config"));
    CHECK(Codes(finding) == "config.output_attentions = False\n");
  }
  SECTION("a selection of the user's own that writes attention out") {
    program.Add(call + LlamaModule("mine", "Tensor", "function: 'vendor.attention:attention_forward'"), kShape, kShape, kShape);
    CHECK_THAT(Single(&program).why(),
               Contains("\"mine\" is selected, and vendor.attention:attention_forward wrote attention out"));
  }
}

TEST_CASE("code of the user's own and of a library", "[eager-attention][fires]") {
  Program program;
  SECTION("user") {
    program.Add(std::string(kEager) + "call_path: 1", kShape, kShape, kShape);
    CHECK_THAT(Single(&program).why(), Contains("train.py:88 computes QK^T, softmax and PV by itself"));
  }
  SECTION("library") {
    program.Add(std::string(kEager) + "call_path: 8", kShape, kShape, kShape);
    CHECK_THAT(Single(&program).why(), Contains("The library vendor, in attention.py:41, computes"));
  }
  SECTION("no call path at all") {
    program.Add(std::string(kEager) + "no_call_path: 'no Python on this thread'", kShape, kShape, kShape);
    CHECK_THAT(Single(&program).why(), Contains("The program computes"));
  }
}

TEST_CASE("the inference fast path where it stores its scores", "[eager-attention][fires]") {
  Program program;
  program.Add(
      "operator: 'aten::_native_multi_head_attention' backend: 'native-mha' path: 'dense' count: 3 score_bytes: 524288 "
      "call_path: 1",
      kShape, kShape, kShape);
  CHECK(Codes(Single(&program)) == "torch.backends.mha.set_fastpath_enabled(False)\n");
}

TEST_CASE("two modules at one user line are two causes", "[eager-attention][fires]") {
  Program program;
  program.Add(std::string(kEager) + "call_path: 3 mask_kind: 'float' " + LlamaModule("eager", "Tensor"), kShape, kShape,
              kShape);
  program.Add(std::string(kEager) +
                  "call_path: 3 mask_kind: 'float' module { class_name: 'CLIPAttention' config_class: 'CLIPVisionConfig' "
                  "selection_state: 'set' selection: 'eager' is_causal: 'no' }",
              kShape, kShape, kShape);
  CHECK(program.Findings("eager-attention").size() == 2);
}

TEST_CASE("need_weights=False runs flash, an unselected layer is backend-unset, a fused fast path is fused",
          "[eager-attention][silent]") {
  Program program;
  program.Add(
      "operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 1 call_path: 4 "
      "module { class_name: 'MultiheadAttention' selection_state: 'not-attention' }",
      kShape, kShape, kShape);
  program.Add("operator: 'aten::_native_multi_head_attention' backend: 'native-mha' path: 'fused' count: 1 call_path: 1",
              kShape, kShape, kShape);
  // Maps asked for of a fused kernel: nothing is stored, whatever is returned.
  program.Add(
      "operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 1 call_path: 2 causal: true " +
          LlamaModule("sdpa", "None", "output_attentions: 'config'"),
      kShape, kShape, kShape);
  REQUIRE(program.Findings().size() == 1);
  CHECK(program.Findings()[0].rule() == "backend-not-as-asked");
  program.Add(std::string(kEager) + "call_path: 3 mask_kind: 'float' " + LlamaModule("", "Tensor"), kShape, kShape, kShape);
  CHECK(program.Findings("eager-attention").empty());
  CHECK(program.Findings("backend-unset").size() == 1);
}

}  // namespace
}  // namespace attntrace::testing
