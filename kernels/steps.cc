#include "kernels/steps.h"

#include <algorithm>

namespace attntrace::reference {
namespace {

int64_t Last(const std::vector<int64_t>& sizes, int from_last) {
  const auto at = static_cast<int64_t>(sizes.size()) + from_last;
  return at < 0 ? 1 : sizes[static_cast<size_t>(at)];
}

bool LastIsStrided(const TensorSpec& tensor) { return Last(tensor.strides, -1) != 1 && Last(tensor.sizes, -1) > 1; }

// A fused kernel, not our own, ran.
bool Freed(const Done& run) {
  return run.response.status == "ok" && run.step.request.path != "tiled" && run.step.purpose != "observed";
}

// All that may be needed at once, but of the ways to be rid of one obstacle only the mildest.
std::vector<std::string> Together(const std::vector<std::string>& applicable) {
  std::vector<std::string> all;
  for (const std::string& change : applicable) {
    const bool second = (change == "no-dropout") || (change == "cast-float32") ||
                        (change == "detach-mask" && std::count(all.begin(), all.end(), "drop-mask") > 0);
    if (!second) all.push_back(change);
  }
  return all;
}

Step Make(const Case& one, std::string purpose, std::string path, std::vector<std::string> changes) {
  Step step{std::move(purpose), one.call};
  step.request.path = std::move(path);
  step.request.changes = std::move(changes);
  return step;
}

// A flex call as SDPA runs it: a causal block mask is is_causal there.
Step Sdpa(const Case& one) {
  Step step = Make(one, "twin", "fused", {});
  step.request.causal = one.call.mask_content == "plain-causal";
  return step;
}

// In order; each is made unless something before has made it pointless.
std::vector<Step> AllSteps(const Case& one, const std::vector<Done>& done) {
  std::vector<Step> steps;
  const auto freed = std::any_of(done.begin(), done.end(), Freed);
  const auto kept_result =
      std::any_of(done.begin(), done.end(), [](const Done& run) { return Freed(run) && !AltersResult(run.step.request); });
  const std::vector<std::string> applicable = ApplicableChanges(one.call);
  if (one.observed_path == "flash" || one.observed_path == "efficient" || one.observed_path == "cudnn") {
    // Fused already, with a mask of Sq x Sk: only a mask that says nothing of its own can go.
    if (std::count(applicable.begin(), applicable.end(), "drop-mask") == 0) return steps;
    return {Make(one, "observed", one.observed_path, {}), Make(one, "change", "fused", {"drop-mask"})};
  }
  steps.push_back(Make(one, "observed", one.observed_path, {}));
  std::vector<std::string> always;
  if (one.observed_path == "eager") always = {"sdpa"};
  steps.push_back(one.flex ? Sdpa(one) : Make(one, "change", "fused", {always.empty() ? "allow" : always[0]}));
  if (!done.empty() && done.size() >= steps.size()) {
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), always.begin(), always.end());
      return more;
    };
    if (!one.flex && !(done.size() > 1 && Freed(done[1]))) {
      for (const std::string& change : applicable) steps.push_back(Make(one, "change", "fused", with({change})));
      const std::vector<std::string> together = Together(applicable);
      if (together.size() > 1 && done.size() >= steps.size() && !freed)
        steps.push_back(Make(one, "change", "fused", with(together)));
    }
    // What no library kernel takes as it is, our own does.
    if (done.size() >= steps.size() && !kept_result) {
      steps.push_back(Make(one, "twin", "tiled", {}));
      if (one.flex) steps.back().request.causal = one.call.mask_content == "plain-causal";
    }
  }
  if (one.flex) steps.push_back(Make(one, "change", "flex-compiled", {"compile"}));
  return steps;
}

}  // namespace

std::string PathOf(const std::string& backend) {
  constexpr const char* kPaths[][2] = {
      {"math", "math"},           {"eager", "eager"}, {"native-mha", "eager"},     {"flash", "flash"},
      {"efficient", "efficient"}, {"cudnn", "cudnn"}, {"flex-dense", "flex-dense"}};
  for (const auto& [ran, path] : kPaths) {
    if (backend == ran) return path;
  }
  return "";
}

bool AltersResult(const Request& request) {
  return std::any_of(request.changes.begin(), request.changes.end(), [](const std::string& change) {
    const ChangeInfo* const info = FindChange(change);
    return info != nullptr && info->alters_result;
  });
}

std::vector<std::string> ApplicableChanges(const Request& call) {
  std::vector<std::string> changes;
  const bool cuda = call.device != "cpu";
  const bool square = Last(call.q.sizes, -2) == Last(call.k.sizes, -2);
  if (call.q.sizes.size() == 3) changes.push_back("unsqueeze");
  if (LastIsStrided(call.q) || LastIsStrided(call.k) || LastIsStrided(call.v)) changes.push_back("contiguous");
  if (call.mask && ((call.mask_content == "plain-causal" && square) || call.mask_content == "all-true"))
    changes.push_back("drop-mask");
  if (call.mask && call.mask->dtype != "bool" && call.mask->dtype != call.q.dtype) changes.push_back("mask-dtype");
  if (call.q.sizes.size() >= 3 && Last(call.q.sizes, -3) != Last(call.k.sizes, -3)) changes.push_back("repeat-heads");
  const int64_t dim = Last(call.q.sizes, -1);
  if (dim != Last(call.v.sizes, -1) || dim % 8 != 0) changes.push_back("pad-head");
  const bool mixed = call.q.dtype != call.k.dtype || call.q.dtype != call.v.dtype;
  if (mixed || (cuda && (call.q.dtype == "float64" || call.q.dtype == "float32"))) changes.push_back("cast-bfloat16");
  if (mixed || (cuda && call.q.dtype == "float64")) changes.push_back("cast-float32");
  if (call.mask && call.mask->requires_grad) changes.push_back("detach-mask");
  if (call.dropout > 0) {
    changes.push_back("move-dropout");
    changes.push_back("no-dropout");
  }
  return changes;
}

std::optional<Step> NextStep(const Case& one, const std::vector<Done>& done) {
  const std::vector<Step> steps = AllSteps(one, done);
  for (const Step& step : steps) {
    const bool made = std::any_of(done.begin(), done.end(), [&](const Done& run) {
      return run.step.purpose == step.purpose && run.step.request.path == step.request.path &&
             run.step.request.changes == step.request.changes;
    });
    if (!made) return step;
  }
  return std::nullopt;
}

}  // namespace attntrace::reference
