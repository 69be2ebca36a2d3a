// flex-dense: flex_attention ran as its reference, which stores the scores in float32. Why it was not compiled is read from the
// frames that lead to it.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

enum class Reason { kNoCompile, kCompileDisabled, kWrapperNotLowered, kRegionNotLowered };

bool IsDynamo(const Frame& frame) { return absl::StartsWith(frame.module(), "torch._dynamo"); }

// The reference goes through Dynamo itself, so only what lies outside flex_attention's own outermost frame tells of a
// torch.compile of the program's.
Reason ReasonOf(const Report& report, const Variant& variant) {
  for (const char* name : {"env.TORCHDYNAMO_DISABLE", "env.TORCH_COMPILE_DISABLE"}) {
    const auto setting = report.environment().settings().find(name);
    if (setting != report.environment().settings().end() && setting->second == "1") return Reason::kCompileDisabled;
  }
  const CallPath* path = FindPath(report, variant);
  if (path == nullptr) return Reason::kNoCompile;
  std::vector<const Frame*> frames;
  int flex = -1;
  for (const uint32_t index : path->frames()) {
    if (index >= static_cast<uint32_t>(report.frames_size())) continue;
    const Frame& frame = report.frames(static_cast<int>(index));
    if (frame.native()) continue;
    if (frame.module() == "torch.nn.attention.flex_attention" && frame.function() == "flex_attention") {
      flex = static_cast<int>(frames.size());
    }
    frames.push_back(&frame);
  }
  if (flex < 0) return path->compiled() ? Reason::kRegionNotLowered : Reason::kNoCompile;
  // Frames that Dynamo's wrapper puts between the caller and the function it compiles.
  bool adjacent = true;
  for (size_t i = static_cast<size_t>(flex) + 1; i < frames.size(); ++i) {
    if (IsDynamo(*frames[i])) return adjacent ? Reason::kWrapperNotLowered : Reason::kRegionNotLowered;
    adjacent = false;
  }
  return Reason::kNoCompile;
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
    case Reason::kWrapperNotLowered:
      absl::StrAppend(
          &why,
          "a torch.compile is around flex_attention and did not fuse it: a backend other than inductor (eager, aot_eager), or "
          "Dynamo gave up on it (recompile limit).");
      AddAdvice(finding,
                "compile it with inductor, and keep what it is guarded on the same from call to call: lengths, mask_mod and "
                "score_mod "
                "objects, requires_grad",
                "flex_attention = torch.compile(flex_attention, dynamic=True)");
      break;
    case Reason::kRegionNotLowered:
      absl::StrAppend(
          &why,
          "a torch.compile further out does not reach this call: a graph break above it, or a backend other than inductor "
          "(eager, aot_eager).");
      AddAdvice(finding, "compile flex_attention by itself as well, so that a graph break above it does no harm",
                "flex_attention = torch.compile(flex_attention)");
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
