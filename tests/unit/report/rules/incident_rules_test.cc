// Rules that judge incidents: exceptions, operators that failed, block masks on the full grid.
#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

constexpr char kLlama[] =
    "module { class_name: 'LlamaAttention' class_module: 'transformers.models.llama.modeling_llama' config_class: "
    "'LlamaConfig' ";
constexpr char kRegistered[] =
    "environment { registered_attention { name: 'flex_attention' } registered_attention { name: 'sdpa' } } ";

std::string Raised(const std::string& type, const std::string& message, const std::string& more = "call_path: 2") {
  return "incidents { id: 1 kind: 'exception' type: '" + type + "' message: \"" + message + "\" count: 1 " + more + " } ";
}

const std::string kOperator =
    "kind: 'operator' operator: 'aten::scaled_dot_product_attention' call_path: 1 dropout_p: 0.1 count: 1 pinned_at: "
    "'/home/u/train.py:87' tensors { role: 'q' dtype: 'float32' device: 'cpu' sizes: [1, 2, 64, 16] } gates { backend: 'flash' "
    "text: "
    "'Both fused kernels do not support non-zero dropout.' words: 'pytorch' } gates { backend: 'math' text: 'Math attention "
    "has "
    "been runtime disabled.' words: 'pytorch' }";

TEST_CASE("KeyError None: nothing was selected, and looking it up raised", "[backend-unset][fires]") {
  Program program;
  program.Merge(kRegistered + Raised("builtins.KeyError", "None",
                                     std::string("call_path: 2 layers: 3 ") + kLlama +
                                         "selection_state: 'unset' attention_mask: 'BlockMask' }"));
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "backend-unset");
  CHECK(findings[0].severity() == "error");
  CHECK(findings[0].incidents(0) == 1);
  CHECK_THAT(findings[0].why(), Contains("LlamaAttention (LlamaConfig), layer 3") && Contains("KeyError: None"));
  CHECK(EvidenceText(findings[0], "registered, taking this mask") == "flex_attention");
  CHECK(Codes(findings[0]) == "config._attn_implementation = \"flex_attention\"\n");
}

TEST_CASE("a KeyError of somebody else's is no selection", "[backend-unset][silent]") {
  Program program;
  program.Merge(Raised("builtins.KeyError", "None", "call_path: 1"));
  program.Merge("incidents { id: 2 kind: 'exception' type: 'builtins.KeyError' message: 'batch' count: 1 call_path: 1 }");
  CHECK(program.Findings().empty());
}

TEST_CASE("a pinned kernel that nobody caught, and the operator behind it, are one finding", "[backend-error][fires]") {
  Program program;
  program.Merge(Raised("builtins.RuntimeError", "No available kernel. Aborting execution.", "call_path: 1"));
  program.Merge("incidents { id: 2 " + kOperator + " }");
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "backend-error");
  CHECK(findings[0].severity() == "error");
  CHECK(findings[0].incidents_size() == 2);
  CHECK(findings[0].gates_size() == 2);
  CHECK(EvidenceText(findings[0], "pinned at") == "/home/u/train.py:87");
  CHECK(EvidenceText(findings[0], "would take it") == "math");
  CHECK_THAT(findings[0].why(), Contains("pinned at train.py:87") && Contains("dropout_p=0.1"));
}

TEST_CASE("the same, caught: a note", "[backend-error][fires]") {
  Program program;
  program.Merge("incidents { id: 1 " + kOperator + " }");
  program.Merge("incidents { id: 2 kind: 'exception' type: 'builtins.ValueError' message: 'else' count: 1 call_path: 1 }");
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity() == "note");
  CHECK_THAT(findings[0].why(), Contains("caught it and went on"));
}

TEST_CASE("each exception of attention has its own words", "[backend-error][fires]") {
  Program program;
  std::string title;
  SECTION("a name that is not registered") {
    program.Merge(
        Raised("builtins.KeyError", "`foo` is not a valid attention implementation registered in the `AttentionInterface`"));
    title = "the selected attention implementation is not registered";
  }
  SECTION("a name that Transformers refuses for a whole model") {
    program.Merge(Raised("builtins.ValueError", "Specified `attn_implementation=\\\"foo\\\"` is not supported. The only"));
    title = "the selected attention implementation is not registered";
    CHECK_THAT(program.Findings()[0].why(), Contains("asks for \"foo\","));
  }
  SECTION("a name that the model's class refuses") {
    program.Merge(Raised("builtins.ValueError",
                         "BloomModel does not support an attention implementation through torch's flex_attention."));
    title = "the model's class does not support the selected attention implementation";
  }
  SECTION("flex on a CPU") {
    program.Merge(Raised("builtins.NotImplementedError", "FlexAttention does not support backward on CPU.",
                         "call_path: 6 facts { key: 'flex.requires_grad' value: 'query' }"));
    CHECK_THAT(program.Findings()[0].why(), Contains("inputs that require a gradient: query."));
    title = "flex_attention has no backward on a CPU";
  }
  SECTION("the recompile limit as an error") {
    program.Merge(Raised("torch._dynamo.exc.FailOnRecompileLimitHit", "Hard failure due to fullgraph=True", "call_path: 6"));
    title = "the recompile limit was reached, and Dynamo was told to fail there";
  }
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "backend-error");
  CHECK(findings[0].title() == title);
}

TEST_CASE("at the recompile limit the function and the guard are told", "[backend-error][fires]") {
  Program program;
  SECTION("by facts") {
    program.Merge(Raised("torch._dynamo.exc.FailOnRecompileLimitHit", "Hard failure due to fullgraph=True",
                         "call_path: 1 facts { key: 'dynamo.recompiled' value: 'flex_attention' } facts { key: 'dynamo.guard' "
                         "value: 'size mismatch' }"));
  }
  SECTION("of a function whose calls came from the same line") {
    program.Merge(Raised("torch._dynamo.exc.FailOnRecompileLimitHit", "Hard failure due to fullgraph=True",
                         "call_path: 1 facts { key: 'dynamo.recompiled' value: 'forward' } facts { key: 'dynamo.guard' value: "
                         "'size mismatch' }"));
    program.Add("operator: 'flex_attention' backend: 'flex-triton' path: 'fused' count: 2 call_path: 1");
  }
  SECTION("by the words of a stance") {
    program.Merge(Raised("builtins.RuntimeError",
                         "Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: "
                         "'/v/torch/nn/attention/flex_attention.py', function name: 'flex_attention'\\n    triggered by the "
                         "following guard failure(s):\\n    - 0/0: size mismatch"));
  }
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "backend-error");
  CHECK(EvidenceText(findings[0], "guard") == "size mismatch");
  CHECK_THAT(findings[0].why(), Contains("The guard that kept failing: size mismatch."));
}

TEST_CASE("the recompile limit of a function that has no attention", "[backend-error][silent]") {
  Program program;
  program.Merge(Raised("torch._dynamo.exc.FailOnRecompileLimitHit", "Hard failure due to fullgraph=True",
                       "call_path: 1 facts { key: 'dynamo.recompiled' value: 'mlp' }"));
  CHECK(program.Findings().empty());
}

TEST_CASE("what the program caught is a note, once, and only where its words are known", "[backend-error][fires]") {
  const std::string unknown_name = "type: 'builtins.KeyError' message: '`foo` is not a valid attention implementation' }";
  Program program;
  program.Merge("incidents { id: 1 kind: 'caught' count: 1 call_path: 2 " + unknown_name);
  program.Merge(
      "incidents { id: 2 kind: 'caught' count: 1 call_path: 6 type: 'builtins.RuntimeError' message: 'unknown words' }");
  REQUIRE(program.Findings().size() == 1);
  CHECK(program.Findings()[0].severity() == "note");
  CHECK_THAT(program.Findings()[0].why(), Contains("The program caught it and went on."));
  program.Merge("incidents { id: 3 kind: 'exception' count: 1 call_path: 2 " + unknown_name);
  REQUIRE(program.Findings().size() == 1);
  CHECK(program.Findings()[0].severity() == "error");
}

TEST_CASE("what the program caught and dropped is a note in a run that ended badly", "[backend-error][fires]") {
  const std::string unknown_name = " type: 'builtins.KeyError' message: '`foo` is not a valid attention implementation' } ";
  for (const std::string& dropped :
       {"incidents { id: 1 kind: 'dropped' count: 1 call_path: 2" + unknown_name,
        "incidents { id: 1 kind: 'dropped' count: 1 call_path: 2 type: 'builtins.ValueError' message: 'no layer' } "
        "incidents { id: 2 kind: 'cause' leads_to: 1 count: 1 call_path: 2" +
            unknown_name}) {
    for (const char* const ended :
         {"run { exit_code: 3 }", "run { ended: 'signal' }",
          "incidents { id: 3 kind: 'exception' type: 'builtins.NameError' message: 'x' count: 1 call_path: 1 }"}) {
      Program program;
      program.Merge(dropped);
      program.Merge("run { ended: 'exit' exit_code: 0 }");
      CHECK(program.Findings().empty());
      program.Merge(ended);
      REQUIRE(program.Findings().size() == 1);
      CHECK(program.Findings()[0].severity() == "note");
      CHECK_THAT(program.Findings()[0].why(), Contains("The program caught it and went on."));
    }
  }
}

TEST_CASE("a cause behind an exception of the program's own counts; one fault a chain", "[backend-error][fires]") {
  Program program;
  program.Merge(Raised("builtins.RuntimeError", "step failed", "call_path: 1"));
  program.Merge(
      "incidents { id: 2 kind: 'cause' leads_to: 1 count: 1 call_path: 2 type: 'builtins.KeyError' message: '`foo` is not a "
      "valid attention implementation' }");
  program.Merge(
      "incidents { id: 3 kind: 'cause' leads_to: 2 count: 1 call_path: 2 type: 'builtins.KeyError' message: '`foo` is not a "
      "valid attention implementation' }");
  REQUIRE(program.Findings().size() == 1);
  CHECK(program.Findings()[0].rule() == "backend-error");
}

TEST_CASE("exceptions that are not attention's, and out of memory", "[backend-error][silent]") {
  Program program;
  program.Merge(Raised("builtins.ValueError", "bad batch", "call_path: 1"));
  program.Merge(
      "incidents { id: 2 kind: 'exception' type: 'torch.OutOfMemoryError' message: 'CUDA out of memory.' count: 1 call_path: 6 "
      "}");
  program.Merge("incidents { id: 3 kind: 'operator' operator: 'aten::_flash_attention_forward' count: 1 call_path: 1 }");
  CHECK(program.Findings().empty());
}

TEST_CASE("a BlockMask that raised", "[mask-backend-mismatch][fires]") {
  Program program;
  program.Merge(
      kRegistered +
      Raised("builtins.TypeError", "scaled_dot_product_attention(): argument 'attn_mask' must be Tensor, not BlockMask",
             std::string("call_path: 2 ") + kLlama + "selection_state: 'set' selection: 'sdpa' attention_mask: 'BlockMask' }"));
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "mask-backend-mismatch");
  CHECK_THAT(findings[0].why(), Contains("was given a BlockMask, \"sdpa\" is selected"));
  CHECK(Codes(findings[0]) == "config._attn_implementation = \"flex_attention\"\n");
}

TEST_CASE("a BlockMask that raised where nothing was selected has one cause", "[backend-unset][fires]") {
  Program program;
  program.Merge(kRegistered + Raised("builtins.TypeError", "unsupported operand type(s) for +: 'Tensor' and 'BlockMask'",
                                     std::string("call_path: 2 layers: 0 ") + kLlama +
                                         "selection_state: 'unset' attention_mask: 'BlockMask' }"));
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "backend-unset");
  CHECK_THAT(findings[0].why(),
             Contains("ran eager instead, which adds its mask to the scores: TypeError: unsupported operand") &&
                 Contains("of what is registered here, flex_attention takes one."));
  CHECK(Codes(findings[0]) == "config._attn_implementation = \"flex_attention\"\n");
}

TEST_CASE("a BlockMask that was sliced like a tensor, which raises no word of it", "[backend-unset][fires]") {
  Program program;
  program.Merge(
      "frames { file: '/v/torch/nn/attention/flex_attention.py' line: 462 function: 'BlockMask.__getitem__' module: "
      "'torch.nn.attention.flex_attention' owner: 'torch' }");
  const int frame = program.report.frames_size() - 1;
  program.Merge("call_paths { frames: [" + std::to_string(frame) + ", 3, 1, 0] call_site: 1 user: 3 }");
  const std::string path = "call_path: " + std::to_string(program.report.call_paths_size());
  program.Merge(kRegistered + Raised("builtins.IndexError", "too many indices for tensor of dimension 3",
                                     path + " layers: 0 " + kLlama + "selection_state: 'unset' attention_mask: 'BlockMask' }"));
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "backend-unset");
  CHECK(Codes(findings[0]) == "config._attn_implementation = \"flex_attention\"\n");
}

TEST_CASE("an IndexError of a layer that was given a BlockMask, raised elsewhere", "[backend-unset][silent]") {
  Program program;
  program.Merge(kRegistered + Raised("builtins.IndexError", "list index out of range",
                                     std::string("call_path: 1 layers: 0 ") + kLlama +
                                         "selection_state: 'unset' attention_mask: 'BlockMask' }"));
  CHECK(program.Findings().empty());
}

TEST_CASE("a bool mask that was added, and a mask that flex_attention never got", "[mask-backend-mismatch][fires]") {
  Program program;
  SECTION("added") {
    program.Add(
        "operator: 'hand-written' backend: 'eager' path: 'dense' count: 1 mask_kind: 'bool' mask_added: true call_path: 3 " +
            LlamaModule("eager", "Tensor"),
        {1, 4, 32, 16}, {1, 4, 32, 16}, {1, 4, 32, 16});
  }
  SECTION("lost") {
    program.Add("operator: 'flex_attention' backend: 'flex-dense' path: 'dense' count: 1 call_path: 8 " +
                LlamaModule("my_flex", "Tensor", "function: 'vendor.attention:attention_forward'"));
  }
  const std::vector<Finding> findings = program.Findings("mask-backend-mismatch");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity() == "error");
}

constexpr char kGridError[] =
    "CUDA error: invalid configuration argument\\nCUDA kernel errors might be asynchronously reported";

TEST_CASE("a grid that CUDA does not take is the attention's with the large batch, wherever the error surfaces",
          "[backend-error][fires]") {
  Program program;
  Variant& variant = program.Add("phase: 'forward' backend: 'flash' path: 'fused' count: 1 call_path: 2", {65536, 8, 4, 64});
  for (Tensor& tensor : *variant.mutable_tensors()) tensor.set_device("cuda:0");
  program.Merge(Raised("torch.AcceleratorError", kGridError, "call_path: 1"));
  const std::vector<Finding> findings = program.Findings("backend-error");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].variants(0) == variant.id());
  CHECK(EvidenceOf(findings[0], "batch") == 65536);
  CHECK_THAT(findings[0].why(), Contains("(flash) has a batch of 65536") && Contains("surfaced at train.py:88"));
}

TEST_CASE("a grid that CUDA does not take, of an operator that threw", "[backend-error][fires]") {
  Program program;
  program.Merge(Raised("torch.AcceleratorError", "CUDA error: invalid argument", "call_path: 1"));
  program.Merge(
      "incidents { id: 2 kind: 'operator' operator: 'aten::_flash_attention_backward' call_path: 1 count: 1 tensors { role: "
      "'q' "
      "device: 'cuda:0' sizes: [16384, 4, 8, 64] } }");
  const std::vector<Finding> findings = program.Findings("backend-error");
  REQUIRE(findings.size() == 1);
  CHECK_THAT(findings[0].why(), Contains("16384, 65536 with its heads"));
}

constexpr char kCudnnError[] =
    "Expected mha_graph.execute(handle, variant_pack, workspace_ptr.get()).is_good() to be true, but got false.";

TEST_CASE("cuDNN's attention that failed is attention's, with the large batch or without", "[backend-error][fires]") {
  Program program;
  const bool large = GENERATE(true, false);
  Variant& variant =
      program.Add("phase: 'forward' backend: 'cudnn' path: 'fused' count: 1 call_path: 2", {large ? 65536 : 8, 8, 4, 64});
  for (Tensor& tensor : *variant.mutable_tensors()) tensor.set_device("cuda:0");
  program.Merge(Raised("builtins.RuntimeError", kCudnnError, "call_path: 1"));
  const std::vector<Finding> findings = program.Findings("backend-error");
  REQUIRE(findings.size() == 1);
  CHECK_THAT(findings[0].why(), Contains("mha_graph.execute"));
  CHECK(EvidenceOf(findings[0], "batch") == (large ? 65536 : -1));
}

TEST_CASE("a grid that CUDA does not take, and no attention that asks for one", "[backend-error][silent]") {
  Program program;
  Variant& variant = program.Add("phase: 'forward' backend: 'flash' path: 'fused' count: 1 call_path: 2", {65535, 1, 4, 64});
  for (Tensor& tensor : *variant.mutable_tensors()) tensor.set_device("cuda:0");
  program.Merge(Raised("torch.AcceleratorError", kGridError, "call_path: 1"));
  CHECK(program.Findings("backend-error").empty());
}

TEST_CASE("masks in their own place", "[mask-backend-mismatch][silent]") {
  Program program;
  program.Add("operator: 'hand-written' backend: 'eager' path: 'dense' count: 1 mask_kind: 'bool' call_path: 3 " +
              LlamaModule("eager", "Tensor"));
  program.Add("operator: 'hand-written' backend: 'eager' path: 'dense' count: 1 mask_kind: 'float' call_path: 3 " +
              LlamaModule("eager", "Tensor"));
  program.Add("operator: 'flex_attention' backend: 'flex-triton' path: 'fused' count: 1 mask_kind: 'block-mask' call_path: 8 " +
              LlamaModule("my_flex", "BlockMask"));
  // What a compiled region was given is not seen.
  program.Add("operator: 'flex_attention' backend: 'flex-triton' path: 'fused' count: 1 call_path: 8 " +
              LlamaModule("my_flex", "BlockMask"));
  program.Add(
      "operator: 'flex_attention' backend: 'flex-dense' path: 'dense' count: 1 score_mod: true "
      "call_path: 8 " +
      LlamaModule("my_flex", "Tensor"));
  CHECK(program.Findings("mask-backend-mismatch").empty());
}

TEST_CASE("a second derivative, uncaught", "[double-backward][fires]") {
  Program program;
  program.Merge(Raised("builtins.RuntimeError",
                       "derivative for aten::_scaled_dot_product_flash_attention_for_cpu_backward is not implemented",
                       "call_path: 5"));
  program.Merge(
      "incidents { id: 2 kind: 'double-backward' type: 'flash' count: 1 call_path: 1 created_at: 5 } environment { settings { "
      "key: 'sdp.math' value: 'on' } }");
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "double-backward");
  CHECK(findings[0].severity() == "error");
  CHECK(findings[0].incidents(0) == 2);
  CHECK_THAT(findings[0].why(), Contains("forward at train.py:88 ran flash") && Contains("allowed but not chosen"));
}

TEST_CASE("a derivative that somebody else lacks", "[double-backward][silent]") {
  Program program;
  program.Merge(Raised("builtins.RuntimeError", "derivative for aten::_cdist_backward is not implemented", "call_path: 1"));
  CHECK(program.Findings().empty());
}

TEST_CASE("the full grid of a block mask: one finding a place", "[block-mask-dense][fires]") {
  Program program;
  program.Merge(
      "incidents { id: 1 kind: 'block-mask' operator: 'create_block_mask' call_path: 1 count: 3 bytes: 4194304 peak_bytes: "
      "37748736 }"
      "incidents { id: 2 kind: 'block-mask' operator: 'create_block_mask' call_path: 1 count: 1 bytes: 16777216 peak_bytes: "
      "150994944 }");
  const std::vector<Finding> findings = program.Findings();
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].rule() == "block-mask-dense");
  CHECK(EvidenceOf(findings[0], "times") == 4);
  CHECK(EvidenceOf(findings[0], "full grid") == 16777216);
  CHECK(EvidenceOf(findings[0], "peak") == 150994944);
}

TEST_CASE("no block mask, or a small one: no finding", "[block-mask-dense][silent]") {
  Program program;
  program.Merge("incidents { id: 1 kind: 'block-mask' call_path: 1 count: 3 bytes: 262144 peak_bytes: 2359296 }");
  program.Add("operator: 'flex_attention' backend: 'flex-triton' path: 'fused' count: 1 mask_kind: 'block-mask' call_path: 6");
  CHECK(program.Findings().empty());
}

}  // namespace
}  // namespace attntrace::testing
