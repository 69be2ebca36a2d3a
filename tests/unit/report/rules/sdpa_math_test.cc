#include <algorithm>
#include <string>

#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

const Shape kShape = {1, 4, 256, 16};
constexpr char kMath[] = "operator: 'aten::scaled_dot_product_attention' backend: 'math' path: 'dense' count: 1 ";
constexpr char kFlash[] = "operator: 'aten::scaled_dot_product_attention' backend: 'flash' path: 'fused' count: 1 ";

std::string Gate(const std::string& text, const std::string& backend = "flash", const std::string& words = "pytorch") {
  return "gates { backend: '" + backend + "' text: '" + text + "' words: '" + words + "' } ";
}

// A call of the user's own with one gate on the CPU.
Finding Single(Program* program) {
  const std::vector<Finding> findings = program->Findings();
  REQUIRE(findings.size() == 1);
  REQUIRE(findings[0].rule() == "sdpa-math");
  return findings[0];
}

TEST_CASE("attention dropout in train mode is one finding over forward, backward and layers", "[sdpa-math][fires]") {
  Program program;
  const std::string common = std::string(kMath) +
                             "call_path: 2 dropout_p: 0.1 causal: true score_bytes: 1048576 kept_bytes: 600 " +
                             LlamaModule("sdpa", "None") + Gate("Both fused kernels do not support non-zero dropout.");
  const Variant forward = program.Add(common + "layers: [0, 1] peak_bytes: 3000000", kShape, kShape, kShape);
  const Variant longer =
      program.Add(common + "layers: 1 peak_bytes: 5000000", {1, 4, 512, 16}, {1, 4, 512, 16}, {1, 4, 512, 16});
  program.AddBackward(forward, 2, 7000000);

  const Finding finding = Single(&program);
  CHECK(finding.severity() == "warning");
  CHECK(finding.phase() == "forward,backward");
  CHECK(finding.forward_calls() == 2);
  CHECK(finding.backward_calls() == 2);
  CHECK(finding.forward_peak_bytes() == 5000000);
  CHECK(finding.backward_peak_bytes() == 7000000);
  CHECK(finding.variants_size() == 3);
  CHECK(finding.variants(0) == longer.id());
  CHECK(std::vector<int>(finding.layers().begin(), finding.layers().end()) == std::vector<int>{0, 1});
  CHECK(finding.gates_size() == 1);
  CHECK(finding.why() ==
        "flash: dropout_p=0.1, from attention_dropout in train mode. Not a leak: what is kept is freed by the backward pass of "
        "each step");
  CHECK_THAT(finding.ran(),
             Contains("math: q, k, v (1, 4, 512, 16), float32 on cpu; scores (1, 4, 512, 512), 1 MiB (largest of 2 shapes)"));
  CHECK(EvidenceOf(finding, "score bytes") == 1048576);
  CHECK(EvidenceOf(finding, "calls") == 4);
  CHECK(EvidenceOf(finding, "kept after forward") == 600);
  CHECK_THAT(Codes(finding), Contains("config.attention_dropout = 0.0"));
}

TEST_CASE("each refusal of the CPU is told in the call's own values, with its smallest change", "[sdpa-math][fires]") {
  Program program;
  Variant& variant = program.Add(std::string(kMath) + "call_path: 1 ");
  const auto set = [&](const Shape& q, const Shape& k, const Shape& v) {
    *variant.add_tensors() = MakeTensor("q", q);
    *variant.add_tensors() = MakeTensor("k", k);
    *variant.add_tensors() = MakeTensor("v", v);
  };
  const auto gate = [&](const std::string& text, const std::string& words) {
    attntrace::Gate& added = *variant.add_gates();
    added.set_backend("flash");
    added.set_text(text);
    added.set_words(words);
  };
  std::string why, code, change;  // the key that a reference run proves it by

  SECTION("three dimensions") {
    set({4, 256, 16}, {4, 256, 16}, {4, 256, 16});
    gate(
        "All fused kernels requires query, key and value to be 4 dimensional, but got Query dim: 3, Key dim: 3, Value dim: 3 "
        "instead.",
        "pytorch");
    why = "flash: q, k, v are 3-D, not 4-D";
    code = "unsqueeze(1)";
    change = "unsqueeze";
  }
  SECTION("value head of another size") {
    set(kShape, kShape, {1, 4, 256, 8});
    gate("Flash attention requires q,k,v to have the same last dimension.", "pytorch");
    why = "flash: value head size 8 is not that of q and k, 16";
    code = "v = F.pad(v, (0, 8)); out = F.scaled_dot_product_attention(q, k, v)[..., :8]";
    change = "pad-head";
  }
  SECTION("value head wider than q's") {
    set(kShape, kShape, {1, 4, 256, 32});
    gate("Flash attention requires q,k,v to have the same last dimension.", "pytorch");
    why = "flash: value head size 32 is not that of q and k, 16";
    code = "q, k = F.pad(q, (0, 16)), F.pad(k, (0, 16)); scale=16**-0.5";
    change = "pad-head";
  }
  SECTION("stride") {
    set(kShape, kShape, kShape);
    variant.mutable_tensors(0)->set_strides(3, 256);
    gate("All fused kernels require the last dimension of the input to have stride 1. Got Query.stride(-1): 256", "pytorch");
    why = "flash: the last dimension of q does not have stride 1";
    code = "q = q.contiguous()\n";
    change = "contiguous";
  }
  SECTION("mask that requires grad, in the agent's words") {
    set(kShape, kShape, kShape);
    *variant.add_tensors() = MakeTensor("mask", {256, 256});
    variant.mutable_tensors(3)->set_requires_grad(true);
    gate("attn_mask requires a gradient, and the fused CPU kernel computes none for it.", "attntrace");
    why = "flash: the mask requires grad";
    code = "attn_mask=mask.detach()";
    change = "detach-mask";
  }
  SECTION("dropout outside any module") {
    set(kShape, kShape, kShape);
    variant.set_dropout_p(0.1);
    gate("Both fused kernels do not support non-zero dropout.", "pytorch");
    why = "flash: dropout_p=0.1. Not a leak: what is kept is freed by the backward pass of each step";
    code = "dropout_p=0.0";
    change = "no-dropout";
  }
  SECTION("nested, strided layout") {
    set({}, {}, {});
    for (Tensor& tensor : *variant.mutable_tensors()) tensor.set_layout("nested-strided");
    gate("Both fused kernels of cpp version currently do not support Nested Tensor inputs.", "pytorch");
    why = "flash: nested tensors (strided layout)";
    code = "layout=torch.jagged";
  }
  SECTION("words that nobody knows yet") {
    set(kShape, kShape, kShape);
    gate("The moon is full.", "pytorch");
    why = "flash: The moon is full.";
  }
  SECTION("no gate was read: the call's own facts speak, and no backend is named") {
    set({4, 256, 16}, {4, 256, 16}, {4, 256, 16});
    variant.set_dropout_p(0.25);
    why =
        "What ruled the fused backends out was not read; the call shows: q, k, v are 3-D, not 4-D; dropout_p=0.25. Not a leak: "
        "what is "
        "kept is freed by the backward pass of each step";
    code = "unsqueeze(1)";
    change = "unsqueeze";
  }
  const Finding finding = Single(&program);
  CHECK(finding.severity() == "warning");
  CHECK(finding.why() == why);
  CHECK_THAT(Codes(finding), Contains(code));
  const auto of_change = [&](const Advice& advice) { return advice.change() == change; };
  CHECK(std::any_of(finding.advice().begin(), finding.advice().end(), of_change) == !finding.advice().empty());
}

TEST_CASE("the agent's own words, where PyTorch has none, are understood like PyTorch's", "[sdpa-math][fires]") {
  struct Said {
    const char* text;
    const char* why;
  };
  const Said said[] = {
      {"Flash attention is switched off.", "By request: every fused backend was switched off. flash: switched off"},
      {"The CPU kernel takes no nested tensor.", "flash: nested tensors (strided layout)"},
      {"The CPU kernel has no dropout.",
       "flash: dropout_p=0.1. Not a leak: what is kept is freed by the backward pass of each step"},
      {"The kernel wants 4 dimensions.", "flash: q, k, v are not all 4-D"},
      {"Batch size or heads of query, key and value differ.", "flash: grouped heads, 8 of Q to 2 of K/V"},
      {"attn_mask requires a gradient, and the fused CPU kernel computes none for it.", "flash: the mask requires grad"},
      {"attn_mask does not broadcast to (batch, heads, Sq, Sk) in 2 or 4 dimensions.",
       "flash: a mask of shape (3, 256, 256) does not broadcast as the kernel needs"},
      {"Head sizes of query, key and value differ.", "flash: value head size 32 is not that of q and k, 16"},
      {"A sequence length is zero.", "flash: an empty sequence (Sq=0)"},
      {"The last dimension is not contiguous.", "flash: the last dimension of k does not have stride 1"},
      {"The dtype has no fused CPU kernel.", "flash: dtype float32"},
  };
  for (const Said& one : said) {
    Program program;
    const std::string text = one.text;
    const bool empty = text.find("zero") != std::string::npos;
    Variant& variant = program.Add(std::string(kMath) + "call_path: 1 dropout_p: 0.1 " + Gate(text, "flash", "attntrace"),
                                   {1, 8, empty ? 0 : 256, 16}, {1, 2, 256, 16}, {1, 2, 256, 32});
    variant.mutable_tensors(0)->set_layout("nested-strided");
    variant.mutable_tensors(1)->set_strides(3, 256);
    *variant.add_tensors() = MakeTensor("mask", {3, 256, 256});
    variant.mutable_tensors(3)->set_requires_grad(true);
    CHECK(Single(&program).why() == one.why);
  }
}

TEST_CASE("every gate of every backend is listed, a kind told once", "[sdpa-math][fires]") {
  Program program;
  Variant& variant = program.Add(
      std::string(kMath) + "call_path: 1 gqa: true " +
          Gate("For dense input, both fused kernels require query, key and value to have the same num_heads.", "efficient") +
          Gate("Flash Attention does not support non-null attn_mask.") +
          Gate("Flash attention requires q,k,v to have the same last dimension and to be less than or equal to 256.") +
          Gate("CuDNN attention has been runtime disabled.", "cudnn") + Gate("head_dim should be no more than 256", "cudnn"),
      {1, 8, 4096, 512}, {1, 2, 4096, 512}, {1, 2, 4096, 512});
  for (Tensor& tensor : *variant.mutable_tensors()) tensor.set_device("cuda:0");
  const Finding finding = Single(&program);
  CHECK(finding.gates_size() == 5);
  CHECK(finding.why() ==
        "cudnn: switched off; flash: a mask was passed; efficient: grouped heads, 8 of Q to 2 of K/V; flash, cudnn: head size "
        "512. A backend runs once all of its refusals are gone");
  CHECK_THAT(Codes(finding), Contains("k, v = k.repeat_interleave(4, -3), v.repeat_interleave(4, -3)"));
  CHECK_THAT(Codes(finding), Contains("torch.backends.cuda.enable_cudnn_sdp(True)"));
}

TEST_CASE("math by request and an empty sequence are notes", "[sdpa-math][fires]") {
  Program program;
  SECTION("pinned, whatever else stands in the way") {
    program.Add(std::string(kMath) + "call_path: 1 dropout_p: 0.1 " + Gate("Flash attention has been runtime disabled.") +
                    Gate("Both fused kernels do not support non-zero dropout.") +
                    Gate("Memory Efficient attention has been runtime disabled.", "efficient"),
                kShape, kShape, kShape);
    const Finding finding = Single(&program);
    CHECK(finding.severity() == "note");
    CHECK_THAT(finding.title(), Contains("by request"));
    CHECK_THAT(Codes(finding), Contains("enable_mem_efficient_sdp(True)"));
  }
  SECTION("one backend left on is no request") {
    program.Add(std::string(kMath) + "call_path: 1 dropout_p: 0.1 " +
                    Gate("Both fused kernels do not support non-zero dropout.") +
                    Gate("Memory Efficient attention has been runtime disabled.", "efficient"),
                kShape, kShape, kShape);
    CHECK(Single(&program).severity() == "warning");
  }
  SECTION("no keys") {
    program.Add(std::string(kMath) + "call_path: 1 " + Gate("All fused kernels do not support zero seq_len_q or seq_len_kv."),
                kShape, {1, 4, 0, 16}, {1, 4, 0, 16});
    const Finding finding = Single(&program);
    CHECK(finding.severity() == "note");
    CHECK(finding.why() == "flash: no keys at all (Sk=0)");
  }
}

TEST_CASE("different refusals at one line are different causes", "[sdpa-math][fires]") {
  Program program;
  program.Add(std::string(kMath) + "call_path: 1 dropout_p: 0.1 " + Gate("Both fused kernels do not support non-zero dropout."),
              kShape, kShape, kShape);
  program.Add(
      std::string(kMath) + "call_path: 1 " + Gate("All fused kernels requires query, key and value to be 4 dimensional"),
      {4, 8, 16}, {4, 8, 16}, {4, 8, 16});
  CHECK(program.Findings("sdpa-math").size() == 2);
}

TEST_CASE("a recompute belongs to its forward though backward() is the user's line then", "[sdpa-math][fires]") {
  Program program;
  const std::string common = std::string(kMath) + "dropout_p: 0.1 causal: true " + LlamaModule("sdpa", "None") +
                             Gate("Both fused kernels do not support non-zero dropout.");
  program.Add(common + "call_path: 2", kShape, kShape, kShape);
  const Variant again = program.Add(common + "call_path: 5 phase: 'recompute'", kShape, kShape, kShape);
  program.AddBackward(again, 1, 10);
  const Finding finding = Single(&program);
  CHECK(finding.phase() == "forward,recompute,backward");
  CHECK(finding.recompute_calls() == 1);
}

TEST_CASE("fused calls give no sdpa-math: dropout 0 and eval twins, D=7, GQA, Sq=1", "[sdpa-math][silent]") {
  Program program;
  const Variant forward =
      program.Add(std::string(kFlash) + "call_path: 2 causal: true " + LlamaModule("sdpa", "None"), kShape, kShape, kShape);
  program.AddBackward(forward, 1, 100);
  program.Add(std::string(kFlash) + "call_path: 1 score_bytes: 7", {1, 8, 512, 7}, {1, 8, 512, 7}, {1, 8, 512, 7});
  program.Add(std::string(kFlash) + "call_path: 1 gqa: true", {1, 8, 512, 64}, {1, 2, 512, 64}, {1, 2, 512, 64});
  program.Add(std::string(kFlash) + "call_path: 1 gates { backend: 'efficient' text: 'not available on this device' }",
              {1, 8, 1, 64}, {1, 8, 512, 64}, {1, 8, 512, 64});
  CHECK(program.Findings().empty());
}

}  // namespace
}  // namespace attntrace::testing
