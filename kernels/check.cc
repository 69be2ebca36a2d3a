#include "kernels/check.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "kernels/tiled/random.h"

namespace attntrace::reference {
namespace {

constexpr int64_t kMostScores = 1 << 24;

double Largest(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  return (a.to(at::kDouble) - b).abs().max().item<double>();
}

// What our own kernel's dropout leaves of each probability, from the host's own Philox.
at::Tensor Kept(const TensorCall& call, const at::Tensor& like) {
  const at::Tensor factor = at::empty(like.sizes(), at::TensorOptions().dtype(at::kDouble));
  const int64_t columns = like.size(-1), rows = columns == 0 ? 0 : like.numel() / columns;
  const uint32_t threshold = tiled::DropThreshold(call.dropout);
  auto* const to = factor.data_ptr<double>();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const bool kept = tiled::Kept(call.seed, static_cast<uint64_t>(row), static_cast<uint64_t>(column), threshold);
      to[row * columns + column] = kept ? 1 / (1 - call.dropout) : 0;
    }
  }
  return factor.to(like.device());
}

at::Tensor Dropped(const TensorCall& call, const at::Tensor& q, at::Tensor k, at::Tensor v,
                   const std::optional<at::Tensor>& mask) {
  if (q.dim() > 2 && q.size(-3) != k.size(-3)) {
    const int64_t times = q.size(-3) / k.size(-3);
    k = k.repeat_interleave(times, -3), v = v.repeat_interleave(times, -3);
  }
  at::Tensor scores = at::matmul(q, k.transpose(-2, -1)) * call.scale.value_or(1 / std::sqrt(static_cast<double>(q.size(-1))));
  if (call.causal) {
    const at::Tensor visible = at::ones({scores.size(-2), scores.size(-1)}, scores.options().dtype(at::kBool)).tril();
    scores = scores.masked_fill(visible.logical_not(), -INFINITY);
  }
  if (mask) scores = scores + *mask;
  return at::matmul(at::_safe_softmax(scores, -1) * Kept(call, scores),
                    v);  // zeros where a whole row is masked, as SDPA has it
}

}  // namespace

bool CanCheck(const TensorCall& call) { return Scores(call) <= kMostScores; }

double LargestDifference(const TensorCall& call, const std::vector<at::Tensor>& inputs, const at::Tensor& out,
                         const at::Tensor& grad_out, const std::vector<at::Tensor>& grads) {
  const c10::AutoGradMode mode(true);
  std::vector<at::Tensor> leaves;
  const auto widen = [&](const at::Tensor& tensor) {
    at::Tensor wide = tensor.detach().to(at::kDouble);
    if (tensor.requires_grad()) leaves.push_back(wide.requires_grad_(true));
    return wide;
  };
  const at::Tensor q = widen(call.q), k = widen(call.k), v = widen(call.v);
  std::optional<at::Tensor> mask = call.mask;
  if (mask && mask->is_floating_point()) {
    mask = widen(*mask);
  } else if (mask) {  // the math operator by itself would add true as one
    mask = at::zeros(mask->sizes(), q.options()).masked_fill_(mask->logical_not(), -INFINITY);
  }
  const at::Tensor right = call.dropout > 0 ? Dropped(call, q, k, v, mask)
                                            : std::get<0>(at::_scaled_dot_product_attention_math(
                                                  q, k, v, mask, 0.0, call.causal, std::nullopt, call.scale, call.gqa));
  double largest = Largest(out.detach(), right.detach());
  if (grads.empty()) return largest;
  const std::vector<at::Tensor> right_grads =
      torch::autograd::grad({right}, leaves, {grad_out.to(at::kDouble)}, std::nullopt, false, /*allow_unused=*/true);
  for (size_t i = 0; i < grads.size() && i < right_grads.size(); ++i) {
    if (grads[i].defined() && right_grads[i].defined()) largest = std::max(largest, Largest(grads[i], right_grads[i]));
  }
  return largest;
}

}  // namespace attntrace::reference
