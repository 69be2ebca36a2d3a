// flex-dense: flex_attention ran as its reference, which stores the scores in float32. Why it was not compiled is read from the
// frames that lead to it.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

enum class Reason { kNoCompile, kCompileDisabled, kGaveUp, kGraphBreak, kOtherBackend };

bool IsDynamo(const Frame& frame) { return absl::StartsWith(frame.module(), "torch._dynamo"); }

bool IsCompileOff(const Environment& environment) {
  for (const char* name : {"env.TORCHDYNAMO_DISABLE", "env.TORCH_COMPILE_DISABLE"}) {
    const auto setting = environment.settings().find(name);
    if (setting != environment.settings().end() && setting->second == "1") return true;
  }
  return false;
}

// The reference goes through Dynamo itself, by a wrapper that only flex_attention's own, uncompiled body calls. So: the
// wrapper's frame tells whether the body was compiled by the program, and only Dynamo's frames outside the body tell of its
// torch.compile.
Reason ReasonOf(const Report& report, const Variant& variant) {
  if (IsCompileOff(report.environment())) return Reason::kCompileDisabled;
  const CallPath* path = FindPath(report, variant);
  if (path == nullptr) return Reason::kNoCompile;
  std::vector<const Frame*> frames;
  size_t outside = 0;
  bool body = false, wrapper = false;
  for (const uint32_t index : path->frames()) {
    if (index >= static_cast<uint32_t>(report.frames_size())) continue;
    const Frame& frame = report.frames(static_cast<int>(index));
    if (frame.native()) continue;
    frames.push_back(&frame);
    if (frame.module() != "torch.nn.attention.flex_attention") continue;
    wrapper |= absl::StrContains(frame.function(), "_flex_attention_hop_wrapper");
    if (frame.function() != "flex_attention") continue;
    body = true;
    outside = frames.size();
  }
  const auto dynamo = std::find_if(frames.begin() + static_cast<std::ptrdiff_t>(outside), frames.end(),
                                   [](const Frame* frame) { return IsDynamo(*frame); });
  if (dynamo == frames.end()) return Reason::kNoCompile;
  if (!body || !wrapper) return Reason::kOtherBackend;
  return dynamo == frames.begin() + static_cast<std::ptrdiff_t>(outside) ? Reason::kGaveUp : Reason::kGraphBreak;
}

// Where the same program reaches flex_attention fused, to tell that a wrapper exists and is not on this path.
std::string FusedElsewhere(const Report& report) {
  for (const Variant& variant : report.variants()) {
    if (variant.backend() == "flex-triton") return Place(CallSite(report, variant));
  }
  return "";
}

void Judge(const Report& report, const Variant& variant, Reason reason, Finding* finding) {
  const Frame* site = CallSite(report, variant);
  const std::string library = OwningLibrary(report, variant);
  std::string why;
  if (site != nullptr)
    why = library.empty() ? absl::StrCat(Place(site), ": ") : absl::StrCat(library, ", in ", Place(site), ": ");
  switch (reason) {
    case Reason::kNoCompile:
      absl::StrAppend(&why, "nothing compiles this path, and flex_attention is fused by torch.compile alone.");
      if (library.empty()) {
        AddAdvice(finding, "compile it once, at module scope, and call that everywhere",
                  "flex_attention = torch.compile(flex_attention)");
      } else {
        AddAdvice(finding, absl::StrCat("compile the function where ", library, " finds it, before the first call"),
                  site == nullptr || site->module().empty()
                      ? ""
                      : absl::StrCat(site->module(), ".flex_attention = torch.compile(", site->module(), ".flex_attention)"));
      }
      break;
    case Reason::kCompileDisabled:
      absl::StrAppend(&why, "torch.compile is switched off for the process.");
      AddAdvice(finding, "let Dynamo compile", "unset TORCHDYNAMO_DISABLE TORCH_COMPILE_DISABLE");
      break;
    case Reason::kGaveUp:
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
    case Reason::kGraphBreak:
      absl::StrAppend(&why, "a torch.compile further out does not reach this call: the graph breaks above it.");
      AddAdvice(finding, "compile flex_attention by itself as well, so that a graph break above it does no harm",
                "flex_attention = torch.compile(flex_attention)");
      break;
    case Reason::kOtherBackend:
      absl::StrAppend(
          &why, "it is compiled with a backend other than inductor (eager, aot_eager), which has no fused lowering for it.");
      AddAdvice(finding, "compile this region with inductor", "torch.compile(..., backend=\"inductor\")");
      break;
  }
  if (const std::string fused = FusedElsewhere(report); !fused.empty()) {
    absl::StrAppend(&why, " The compiled flex_attention of this program is reached from ", fused, ".");
    AddText(finding, "fused at", fused);
  }
  if (variant.mask_kind() == "block-mask") absl::StrAppend(&why, " The BlockMask saves no memory here.");
  finding->set_why(why);
}

}  // namespace

void CheckFlexDense(const Report& report, std::vector<Finding>* findings) {
  const auto picks = [](const Variant& variant) { return variant.backend() == "flex-dense"; };
  const auto key = [&](const Variant& variant) { return absl::StrCat(ReasonOf(report, variant)); };
  for (const Cause& cause : FindCauses(report, picks, key)) {
    Finding finding = Describe(cause);
    Judge(report, cause.first(), ReasonOf(report, cause.first()), &finding);
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
