#include "kernels/check.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

namespace attntrace::reference {
namespace {

constexpr int64_t kMostScores = 1 << 24;

double Largest(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0) return 0;
  return (a.to(at::kDouble) - b).abs().max().item<double>();
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
  const at::Tensor right =
      std::get<0>(at::_scaled_dot_product_attention_math(q, k, v, mask, 0.0, call.causal, std::nullopt, call.scale, call.gqa));
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
