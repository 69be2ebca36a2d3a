#include "kernels/paths.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "kernels/changes.h"
#include "kernels/surroundings.h"
#include "kernels/tiled_attention.h"

namespace attntrace::reference {
namespace {

struct Switches {
  bool flash, efficient, cudnn, math;
};

// Pins SDPA as sdpa_kernel() does, for the life of this object.
class Pinned {
 public:
  explicit Pinned(Switches wanted)
      : before_{context().userEnabledFlashSDP(), context().userEnabledMemEfficientSDP(), context().userEnabledCuDNNSDP(),
                context().userEnabledMathSDP()} {
    Set(wanted);
  }
  ~Pinned() { Set(before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  static at::Context& context() { return at::globalContext(); }
  static void Set(Switches to) {
    context().setSDPUseFlash(to.flash);
    context().setSDPUseMemEfficient(to.efficient);
    context().setSDPUseCuDNN(to.cudnn);
    context().setSDPUseMath(to.math);
  }
  const Switches before_;
};

at::Tensor AsSwitched(const TensorCall& call) {
  return at::scaled_dot_product_attention(call.q, call.k, call.v, call.mask, call.dropout, call.causal, call.scale, call.gqa);
}

at::Tensor Sdpa(const TensorCall& call, Switches switches) {
  const Pinned pinned(switches);
  return AsSwitched(call);
}

// As SDPA calls it: a bool mask is made one that is added.
at::Tensor MathAlone(const TensorCall& call) {
  std::optional<at::Tensor> mask = call.mask;
  if (mask && mask->scalar_type() == at::kBool) {
    mask = at::zeros(mask->sizes(), call.q.options().requires_grad(false)).masked_fill_(mask->logical_not(), -INFINITY);
  }
  return std::get<0>(at::_scaled_dot_product_attention_math(call.q, call.k, call.v, mask, call.dropout, call.causal,
                                                            std::nullopt, call.scale, call.gqa));
}

// The switches are the whole process's. Inside the program they stay, and PyTorch is asked what it would choose.
at::Tensor FusedAsSwitched(const TensorCall& call) {
  const int64_t choice =
      at::_fused_sdp_choice(call.q, call.k, call.v, call.mask, call.dropout, call.causal, call.scale, call.gqa);
  TORCH_CHECK(choice > static_cast<int64_t>(at::SDPBackend::math),
              "No available kernel, with the switches as the program set them");
  return AsSwitched(call);
}

at::Tensor Flash(const TensorCall& call) {
  if (InProgram()) return AsSwitched(call);
  return Sdpa(call, {.flash = true, .efficient = false, .cudnn = false, .math = false});
}
at::Tensor Efficient(const TensorCall& call) {
  if (InProgram()) return AsSwitched(call);
  return Sdpa(call, {.flash = false, .efficient = true, .cudnn = false, .math = false});
}
at::Tensor Cudnn(const TensorCall& call) {
  if (InProgram()) return AsSwitched(call);
  return Sdpa(call, {.flash = false, .efficient = false, .cudnn = true, .math = false});
}
at::Tensor Fused(const TensorCall& call) {
  if (InProgram()) return FusedAsSwitched(call);
  return Sdpa(call, {.flash = true, .efficient = true, .cudnn = true, .math = false});
}
at::Tensor Math(const TensorCall& call) {
  if (InProgram()) return MathAlone(call);
  return Sdpa(call, {.flash = false, .efficient = false, .cudnn = false, .math = true});
}

// As models write it: the scores are scaled, masked, put through softmax and dropped out one after the other.
at::Tensor Eager(const TensorCall& call) {
  at::Tensor k = call.k, v = call.v;
  if (call.q.dim() > 2 && call.q.size(-3) != k.size(-3)) {
    const int64_t times = call.q.size(-3) / k.size(-3);
    k = k.repeat_interleave(times, -3), v = v.repeat_interleave(times, -3);
  }
  const double scale = call.scale.value_or(1 / std::sqrt(static_cast<double>(call.q.size(-1))));
  at::Tensor scores = at::matmul(call.q, k.transpose(-2, -1)) * scale;
  if (call.causal) {
    const at::Tensor visible = at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(visible.logical_not(), -INFINITY);
  }
  if (call.mask && call.mask->scalar_type() == at::kBool) {
    scores = scores.masked_fill(call.mask->logical_not(), -INFINITY);
  } else if (call.mask) {
    scores = scores + *call.mask;
  }
  at::Tensor weights = at::softmax(scores, -1).to(call.q.scalar_type());
  scores.reset();
  if (call.dropout > 0) weights = at::dropout(weights, call.dropout, true);
  return at::matmul(weights, v);
}

at::Tensor Tiled(const TensorCall& call) { return TiledAttention(call); }

struct Path {
  const char* name;
  at::Tensor (*run)(const TensorCall& call);
};
constexpr Path kPaths[] = {{"fused", Fused}, {"flash", Flash}, {"efficient", Efficient}, {"cudnn", Cudnn},
                           {"math", Math},   {"eager", Eager}, {"tiled", Tiled}};

const Path* Find(const std::string& name) {
  for (const Path& path : kPaths) {
    if (name == path.name) return &path;
  }
  return nullptr;
}

}  // namespace

bool KnowsPath(const std::string& path) { return Find(path) != nullptr; }

at::Tensor RunPath(const std::string& path, const std::vector<std::string>& changes, const TensorCall& call) {
  const Path* const known = Find(path);
  TORCH_CHECK(known != nullptr, "no path ", path);
  ChangedCall changed{.call = call};
  for (const std::string& change : changes) Change(change, &changed);
  return Restore(call, changed, known->run(changed.call));
}

}  // namespace attntrace::reference
