#include "report/rules/flex_reason.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "report/rules/support.h"

namespace attntrace::rules {
namespace {

constexpr int64_t kUsualLimit = 8;  // torch._dynamo.config.recompile_limit as it comes

bool IsDynamo(const Frame& frame) { return absl::StartsWith(frame.module(), "torch._dynamo"); }

bool IsCompileOff(const Environment& environment) {
  for (const char* name : {"env.TORCHDYNAMO_DISABLE", "env.TORCH_COMPILE_DISABLE"}) {
    const auto setting = environment.settings().find(name);
    if (setting != environment.settings().end() && setting->second == "1") return true;
  }
  return false;
}

// Inductor's template for a GPU refuses heads below 16, and errors may be suppressed.
bool SmallHeads(const Variant& variant) {
  const Tensor* q = FindTensor(variant, "q");
  return q != nullptr && absl::StartsWith(q->device(), "cuda") && q->sizes_size() > 0 && q->sizes(q->sizes_size() - 1) < 16;
}

}  // namespace

// The reference goes through Dynamo itself, by a wrapper that only flex_attention's own, uncompiled body calls. So: the
// wrapper's frame tells whether the body was compiled by the program, and only Dynamo's frames outside the body tell of its
// torch.compile.
FlexReason FlexReasonOf(const Report& report, const Variant& variant) {
  if (!Fact(variant, "flex.debug").empty()) return FlexReason::kDebug;
  if (IsCompileOff(report.environment()) || !Fact(variant, "dynamo.disable").empty()) return FlexReason::kCompileDisabled;
  const std::string stance = Fact(variant, "dynamo.stance");
  if (stance == "force_eager") return FlexReason::kStance;
  const CallPath* path = FindPath(report, variant);
  if (path == nullptr) return FlexReason::kNoCompile;
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
  if (dynamo == frames.end()) return FlexReason::kNoCompile;
  if (!body || !wrapper) return FlexReason::kOtherBackend;
  int64_t recompiles = 0;
  (void)absl::SimpleAtoi(Fact(variant, "dynamo.recompiles"), &recompiles);
  if (dynamo == frames.begin() + static_cast<std::ptrdiff_t>(outside)) {
    if (recompiles > 0) return FlexReason::kRecompileLimit;
    if (stance == "eager_on_recompile") return FlexReason::kStance;
    if (SmallHeads(variant)) return FlexReason::kHeadSize;
    return Fact(variant, "dynamo.suppress_errors").empty() ? FlexReason::kGaveUp : FlexReason::kSuppressed;
  }
  // A function further out that was compiled until its limit, and then not at all.
  return recompiles >= kUsualLimit && Fact(variant, "dynamo.break").empty() ? FlexReason::kRecompileLimit
                                                                            : FlexReason::kGraphBreak;
}

std::string Fact(const Variant& variant, const std::string& name) {
  const auto at = variant.facts().find(name);
  return at == variant.facts().end() ? "" : at->second;
}

FusedCalls FusedBefore(const Report& report, const Variant& variant) {
  const Frame* user = UserLine(report, variant);
  FusedCalls calls;
  for (const Variant& one : report.variants()) {
    if (one.backend() != "flex-triton" && one.backend() != "flex-cpp") continue;
    const Frame* line = UserLine(report, one);
    if (line == nullptr || user == nullptr || line->file() != user->file() || line->line() != user->line()) continue;
    if (one.phase() != "backward") calls.forward += one.count();
    calls.peak_bytes = std::max<int64_t>(calls.peak_bytes, one.peak_bytes());
  }
  return calls;
}

std::string BlockMaskInVain(const Cause& cause) {
  if (cause.first().mask_kind() != "block-mask") return "";
  double least = 101, most = -1;
  std::string low, high;
  for (const Variant* variant : cause.variants) {
    const std::string text = Fact(*variant, "flex.mask_density");
    double percent = 0;
    if (!absl::SimpleAtod(text, &percent)) continue;
    if (percent < least) least = percent, low = text;
    if (percent > most) most = percent, high = text;
  }
  if (low.empty()) return " The BlockMask saves no memory here.";
  if (low == "100") return " Its BlockMask keeps all of its blocks, so that a fused kernel would skip none either.";
  return absl::StrCat(" Its BlockMask keeps ", low, " %", low == high ? "" : absl::StrCat(" to ", high, " %"),
                      " of the blocks, which saves no memory here.");
}

std::string FlexPlace(const Report& report, const Variant& variant) {
  const Frame* site = CallSite(report, variant);
  if (site == nullptr) return "";
  const std::string library = OwningLibrary(report, variant);
  return library.empty() ? absl::StrCat(Place(site), ": ") : absl::StrCat(library, ", in ", Place(site), ": ");
}

}  // namespace attntrace::rules
