// flex-dense: flex_attention ran as its reference, which stores the scores in float32. Why it was not compiled is read from the
// frames that lead to it.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/flex_reason.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

// Where the same program reaches flex_attention fused, to tell that a wrapper exists and is not on this path.
std::string FusedElsewhere(const Report& report) {
  for (const Variant& variant : report.variants()) {
    if (variant.backend() == "flex-triton" || variant.backend() == "flex-cpp") return Place(CallSite(report, variant));
  }
  return "";
}

// What a library calls is the name it imported, or PyTorch's own, where it imported PyTorch's module.
void AdviseLibrary(const std::string& library, const Frame* site, const Variant& variant, Finding* finding) {
  const auto found = variant.facts().find("flex.reached_as");
  const std::string name = found == variant.facts().end() ? "flex_attention" : found->second;
  if (absl::EndsWith(name, ".flex_attention")) {
    AddAdvice(
        finding,
        absl::StrCat("compile the function in PyTorch's module, where ", library, " looks it up, before the first call"),
        "torch.nn.attention.flex_attention.flex_attention = torch.compile(torch.nn.attention.flex_attention.flex_attention)",
        Change::kCompile);
    return;
  }
  const std::string full = site == nullptr || site->module().empty() ? "" : absl::StrCat(site->module(), ".", name);
  AddAdvice(finding, absl::StrCat("compile the function where ", library, " finds it, before the first call"),
            full.empty() ? "" : absl::StrCat(full, " = torch.compile(", full, ")"), Change::kCompile);
}

void Judge(const Report& report, const Cause& cause, FlexReason reason, Finding* finding) {
  const Variant& variant = cause.first();
  const Frame* site = CallSite(report, variant);
  const std::string library = OwningLibrary(report, variant);
  std::string why = FlexPlace(report, variant);
  switch (reason) {
    case FlexReason::kNoCompile:
      absl::StrAppend(&why, "nothing compiles this path, and flex_attention is fused by torch.compile alone.");
      if (library.empty()) {
        AddAdvice(finding, "compile it once, at module scope, and call that everywhere",
                  "flex_attention = torch.compile(flex_attention)", Change::kCompile);
      } else {
        absl::StrAppend(&why, " That is ", library, "'s own choice.");
        AdviseLibrary(library, site, variant, finding);
      }
      break;
    case FlexReason::kCompileDisabled:
      absl::StrAppend(&why, "torch.compile is switched off for the process.");
      AddAdvice(finding, "let Dynamo compile", "unset TORCHDYNAMO_DISABLE TORCH_COMPILE_DISABLE");
      break;
    case FlexReason::kStance:
      absl::StrAppend(&why, "torch.compiler.set_stance(\"", Fact(variant, "dynamo.stance"), "\") is in force: ",
                      Fact(variant, "dynamo.stance") == "force_eager"
                          ? "what is compiled runs as it is written."
                          : "what would have to be compiled anew runs as it is written.");
      AddAdvice(finding, "leave the stance at its default around this call", "torch.compiler.set_stance(\"default\")");
      break;
    case FlexReason::kDebug:
      absl::StrAppend(&why, "flex_attention's debug switch is on: it runs its reference, compiled or not.");
      AddAdvice(finding, "switch it off", "torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = False");
      break;
    case FlexReason::kHeadSize:
      absl::StrAppend(
          &why,
          "a torch.compile is around flex_attention, but its template takes no heads below 16, and Dynamo ran it as it is.");
      AddAdvice(finding, "pad the heads to 16, and keep the scale",
                "flex_attention(*(F.pad(x, (0, 16 - D)) for x in (q, k, v)), scale=D**-0.5)[..., :D]");
      break;
    case FlexReason::kSuppressed:
      absl::StrAppend(&why,
                      "a torch.compile is around flex_attention, compiling it failed, and Dynamo ran it as it is: "
                      "torch._dynamo.config.suppress_errors is set, which turns the error into a warning.");
      AddAdvice(finding, "let the error through, and change what it names", "torch._dynamo.config.suppress_errors = False");
      break;
    case FlexReason::kRecompileLimit:  // flex-fell-back tells of these
    case FlexReason::kGaveUp:
      absl::StrAppend(&why,
                      "a torch.compile is around flex_attention, and Dynamo ran it as it is all the same: it gave up on it, "
                      "most often because the recompile limit was reached.");
      AddAdvice(
          finding,
          "keep what it is guarded on the same from call to call: lengths, mask_mod and score_mod objects, requires_grad; "
          "or let lengths vary",
          "flex_attention = torch.compile(flex_attention, dynamic=True)");
      AddAdvice(finding, "raise the limit", "torch._dynamo.config.recompile_limit = 64");
      break;
    case FlexReason::kGraphBreak:
      absl::StrAppend(&why, "a torch.compile further out does not reach this call: the graph breaks above it.");
      if (const std::string at = Fact(variant, "dynamo.break_at"); !at.empty()) {
        const std::string short_at = at.substr(at.rfind('/') + 1);
        absl::StrAppend(&why, " It broke at ", short_at, ": ", Fact(variant, "dynamo.break"), ".");
        AddText(finding, "graph break at", at);
        AddAdvice(finding, absl::StrCat("take away what breaks it, at ", short_at));
      }
      AddAdvice(finding, "compile flex_attention by itself as well, so that a graph break above it does no harm",
                "flex_attention = torch.compile(flex_attention)", Change::kCompile);
      break;
    case FlexReason::kOtherBackend:
      absl::StrAppend(
          &why, "it is compiled with a backend other than inductor (eager, aot_eager), which has no fused lowering for it.");
      AddAdvice(finding, "compile this region with inductor", "torch.compile(..., backend=\"inductor\")", Change::kCompile);
      break;
  }
  if (const std::string fused = FusedElsewhere(report); !fused.empty()) {
    absl::StrAppend(&why, " The compiled flex_attention of this program is reached from ", fused, ".");
    AddText(finding, "fused at", fused);
  }
  absl::StrAppend(&why, BlockMaskInVain(cause));
  finding->set_why(why);
}

}  // namespace

void CheckFlexDense(const Report& report, std::vector<Finding>* findings) {
  const auto picks = [&](const Variant& variant) {
    return variant.backend() == "flex-dense" && FlexReasonOf(report, variant) != FlexReason::kRecompileLimit;
  };
  const auto key = [&](const Variant& variant) { return absl::StrCat(FlexReasonOf(report, variant)); };
  for (const Cause& cause : FindCauses(report, picks, key)) {
    Finding finding = Describe(cause);
    Judge(report, cause, FlexReasonOf(report, cause.first()), &finding);
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
