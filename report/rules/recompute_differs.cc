// recompute-differs: what a checkpoint ran again took another backend than the forward that it repeats.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"

namespace attntrace {
namespace {

using namespace rules;

bool SameShapes(const Variant& a, const Variant& b) {
  if (a.shapes_folded() || b.shapes_folded()) return true;
  for (const char* role : {"q", "k", "v"}) {
    const Tensor *left = FindTensor(a, role), *right = FindTensor(b, role);
    if (left == nullptr || right == nullptr) continue;
    if (!std::equal(left->sizes().begin(), left->sizes().end(), right->sizes().begin(), right->sizes().end())) return false;
  }
  return true;
}

bool ShareALayer(const Variant& a, const Variant& b) {
  if (a.layers().empty() || b.layers().empty()) return true;
  return std::any_of(a.layers().begin(), a.layers().end(),
                     [&](int32_t layer) { return std::find(b.layers().begin(), b.layers().end(), layer) != b.layers().end(); });
}

// The forwards that this recompute may repeat: same code, same module in the same mode, same shapes.
std::vector<const Variant*> ForwardsOf(const Report& report, const Variant& recompute) {
  const Frame* site = CallSite(report, recompute);
  std::vector<const Variant*> forwards;
  for (const Variant& variant : report.variants()) {
    if (variant.phase() != "forward" || variant.process() != recompute.process()) continue;
    const Frame* other = CallSite(report, variant);
    if (site == nullptr || other == nullptr || site->file() != other->file() || site->line() != other->line()) continue;
    if (ModuleClass(variant) != ModuleClass(recompute) || variant.module().training() != recompute.module().training())
      continue;
    if (SameShapes(variant, recompute) && ShareALayer(variant, recompute)) forwards.push_back(&variant);
  }
  return forwards;
}

std::string BackendsOf(const std::vector<const Variant*>& variants) {
  std::set<std::string> backends;
  for (const Variant* variant : variants) backends.insert(variant->backend());
  return JoinWords({backends.begin(), backends.end()});
}

}  // namespace

void CheckRecomputeDiffers(const Report& report, std::vector<Finding>* findings) {
  const auto differs = [&](const Variant& variant) {
    if (variant.phase() != "recompute") return false;
    const std::vector<const Variant*> forwards = ForwardsOf(report, variant);
    return !forwards.empty() && std::none_of(forwards.begin(), forwards.end(),
                                             [&](const Variant* forward) { return forward->backend() == variant.backend(); });
  };
  const auto key = [&](const Variant& variant) { return BackendsOf(ForwardsOf(report, variant)); };
  for (const Cause& cause : FindCauses(report, differs, key)) {
    const Variant& first = cause.first();
    const std::vector<const Variant*> forwards = ForwardsOf(report, first);
    const std::string before = BackendsOf(forwards);
    Finding finding = Describe(cause);
    AddText(&finding, "forward ran", before);
    AddText(&finding, "recompute ran", first.backend());
    int64_t forward_peak = 0;
    for (const Variant* forward : forwards) forward_peak = std::max(forward_peak, forward->peak_bytes());
    AddBytes(&finding, "peak of the first forward", forward_peak);
    finding.set_why(absl::StrCat(
        "The forward ran ", before, ", its recompute in the backward pass ran ", first.backend(),
        ": something that decides the backend was not the same again (sdpa_kernel, autocast, grad mode, a flag). Results "
        "may differ between the two, and the memory that checkpointing saves may come back."));
    AddAdvice(&finding, "put what selects the backend inside the checkpointed function, so that the recompute sees it too",
              "def block(x):\n    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):\n        return layer(x)");
    AddAdvice(&finding, "have checkpoint restore it", "checkpoint(block, x, use_reentrant=False, context_fn=contexts)");
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
