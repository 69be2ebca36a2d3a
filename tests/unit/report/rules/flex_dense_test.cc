
#include "tests/unit/catch.h"
#include "tests/unit/report/rules/program.h"

namespace attntrace::testing {
namespace {

const Shape kShape = {1, 2, 512, 16};

Variant& AddFlex(Program* program, Path path, const std::string& more = "") {
  return program->Add(
      "operator: 'FlexAttentionAutogradOp' backend: 'flex-dense' path: 'dense' count: 4 score_bytes: 2097152 peak_bytes: "
      "4000000 "
      "mask_kind: 'block-mask' call_path: " +
          std::to_string(path) + " " + more,
      kShape, kShape, kShape);
}

Finding Single(Program* program) {
  const std::vector<Finding> findings = program->Findings("flex-dense");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].severity() == "warning");
  return findings[0];
}

TEST_CASE("called plainly: one finding a call site, forward and backward", "[flex-dense][fires]") {
  Program program;
  const Variant forward = AddFlex(&program, kFlex);
  AddFlex(&program, kFlex, "layers: 3");
  program.AddBackward(forward, 4, 9000000);
  REQUIRE(program.Findings().size() == 1);
  const Finding finding = Single(&program);
  CHECK(finding.phase() == "forward,backward");
  CHECK(finding.forward_calls() == 8);
  CHECK(finding.backward_peak_bytes() == 9000000);
  CHECK(EvidenceOf(finding, "score bytes") == 2097152);
  CHECK(finding.why() ==
        "train.py:88: nothing compiles this path, and flex_attention is fused by torch.compile alone. The BlockMask saves no "
        "memory here.");
  CHECK(Codes(finding) == "flex_attention = torch.compile(flex_attention)\n");
}

TEST_CASE("how many of its blocks the mask keeps, where it was read", "[flex-dense][fires]") {
  Program program;
  AddFlex(&program, kFlex, "facts { key: 'flex.mask_density' value: '3.12' }");
  CHECK_THAT(Single(&program).why(), Contains("alone. Its BlockMask keeps 3.12 % of the blocks, which saves no memory here."));
  SECTION("the least and the most of several, in the order of the numbers") {
    AddFlex(&program, kFlex, "facts { key: 'flex.mask_density' value: '12.5' }");
    AddFlex(&program, kFlex);
    AddFlex(&program, kFlex, "facts { key: 'flex.mask_density' value: '100' }");
    CHECK_THAT(Single(&program).why(), Contains("Its BlockMask keeps 3.12 % to 100 % of the blocks"));
  }
}

TEST_CASE("a mask that keeps all of its blocks would save nothing in a kernel either", "[flex-dense][fires]") {
  Program program;
  AddFlex(&program, kFlex, "facts { key: 'flex.mask_density' value: '100' }");
  CHECK_THAT(Single(&program).why(),
             Contains("Its BlockMask keeps all of its blocks, so that a fused kernel would skip none either."));
}

TEST_CASE("a library's path that misses the program's compiled wrapper", "[flex-dense][fires]") {
  Program program;
  AddFlex(&program, kFlexInVendor);
  program.Add("operator: 'flex_attention' backend: 'flex-triton' path: 'fused' count: 4 call_path: 7 mask_kind: 'block-mask'",
              kShape, kShape, kShape);
  const Finding finding = Single(&program);
  CHECK_THAT(finding.why(), Contains("vendor, in attention.py:41: nothing compiles this path") &&
                                Contains("The compiled flex_attention of this program is reached from train.py:88."));
  CHECK(EvidenceText(finding, "fused at") == "train.py:88");
  CHECK(Codes(finding) == "vendor.attention.flex_attention = torch.compile(vendor.attention.flex_attention)\n");
}

TEST_CASE("a compile that gave up, one that does not reach the call, and one that cannot fuse it", "[flex-dense][fires]") {
  Program program;
  SECTION("recompile limit") {
    AddFlex(&program, kFlexGivenUp);
    const Finding finding = Single(&program);
    CHECK_THAT(finding.why(), Contains("Dynamo ran it as it is all the same: it gave up on it"));
    CHECK_THAT(Codes(finding), Contains("dynamic=True"));
  }
  SECTION("graph break") {
    AddFlex(&program, kFlexBelowBreak);
    const Finding finding = Single(&program);
    CHECK_THAT(finding.why(), Contains("a torch.compile further out does not reach this call: the graph breaks above it"));
    CHECK(Codes(finding) == "flex_attention = torch.compile(flex_attention)\n");
  }
  SECTION("another backend, around the function or around a region") {
    AddFlex(&program, GENERATE(kFlexOtherBackend, kFlexInRegion));
    const Finding finding = Single(&program);
    CHECK_THAT(finding.why(), Contains("compiled with a backend other than inductor"));
    CHECK(Codes(finding) == "torch.compile(..., backend=\"inductor\")\n");
  }
  SECTION("a stance that lets nothing be compiled anew") {
    AddFlex(&program, kFlexGivenUp, "facts { key: 'dynamo.stance' value: 'eager_on_recompile' }");
    CHECK_THAT(Single(&program).why(),
               Contains("set_stance(\"eager_on_recompile\") is in force: what would have to be compiled anew"));
  }
  SECTION("errors of compilation are suppressed") {
    AddFlex(&program, kFlexGivenUp, "facts { key: 'dynamo.suppress_errors' value: 'config' }");
    const Finding finding = Single(&program);
    CHECK_THAT(finding.why(), Contains("compiling it failed"));
    CHECK(Codes(finding) == "torch._dynamo.config.suppress_errors = False\n");
  }
  SECTION("heads that the template for a GPU does not take") {
    Variant& variant = program.Add("operator: 'flex_attention' backend: 'flex-dense' path: 'dense' count: 1 call_path: 7",
                                   {1, 2, 128, 8}, {1, 2, 128, 8}, {1, 2, 128, 8});
    variant.set_call_path(kFlexGivenUp);
    for (Tensor& tensor : *variant.mutable_tensors()) tensor.set_device("cuda:0");
    CHECK_THAT(Single(&program).why(), Contains("takes no heads below 16"));
  }
  SECTION("switched off") {
    program.Merge("environment { settings { key: 'env.TORCHDYNAMO_DISABLE' value: '1' } }");
    AddFlex(&program, kFlexGivenUp);
    CHECK_THAT(Single(&program).why(), Contains("torch.compile is switched off"));
  }
}

TEST_CASE("what is to be compiled is what the library calls", "[flex-dense][fires]") {
  Program program;
  std::string code;
  SECTION("a name of its own") {
    AddFlex(&program, kFlexInVendor, "facts { key: 'flex.reached_as' value: '_flex' }");
    code = "vendor.attention._flex = torch.compile(vendor.attention._flex)\n";
  }
  SECTION("PyTorch's module") {
    AddFlex(&program, kFlexInVendor, "facts { key: 'flex.reached_as' value: 'flex_attention.flex_attention' }");
    code =
        "torch.nn.attention.flex_attention.flex_attention = torch.compile(torch.nn.attention.flex_attention.flex_attention)\n";
  }
  CHECK(Codes(Single(&program)) == code);
}

TEST_CASE("a dense backward whose forward was not seen stands alone", "[flex-dense][fires]") {
  Program program;
  AddFlex(&program, kFlex, "phase: 'backward'");
  CHECK(Single(&program).phase() == "backward");
}

TEST_CASE("compiled flex_attention", "[flex-dense][silent]") {
  Program program;
  const Variant forward = program.Add(
      "operator: 'flex_attention' backend: 'flex-triton' path: 'fused' count: 4 call_path: 7 mask_kind: 'block-mask'", kShape,
      kShape, kShape);
  program.AddBackward(forward, 4, 100);
  CHECK(program.Findings().empty());
}

}  // namespace
}  // namespace attntrace::testing
