#include "kernels/tiled_attention.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "kernels/tiled/call.h"
#include "kernels/tiled_cuda.h"

namespace attntrace::reference {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

tiled::Type TypeOf(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return tiled::Type::kFloat32;
    case at::kDouble:
      return tiled::Type::kFloat64;
    case at::kHalf:
      return tiled::Type::kFloat16;
    case at::kBFloat16:
      return tiled::Type::kBFloat16;
    case at::kBool:
      return tiled::Type::kBool;
    default:
      TORCH_CHECK(false, "the tiled kernel has no dtype ", tensor.scalar_type());
  }
}

// Two and three dimensions are four with leading ones.
at::Tensor Four(at::Tensor tensor) {
  while (tensor.dim() < 4) tensor = tensor.unsqueeze(0);
  return tensor;
}

tiled::Operand OperandOf(const at::Tensor& four) {
  return {four.data_ptr(), TypeOf(four), 0, {four.stride(0), four.stride(1), four.stride(2), four.stride(3)}};
}

at::Tensor Expanded(const at::Tensor& mask, const tiled::Call& call) {
  return Four(mask).expand({call.batch, call.heads, call.seq_q, call.seq_kv});
}

tiled::Call Describe(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale) {
  tiled::Call call{};
  call.batch = q.size(0), call.heads = q.size(1), call.heads_kv = k.size(1), call.seq_q = q.size(2), call.seq_kv = k.size(2);
  call.dim = q.size(3), call.dim_v = v.size(3);
  TORCH_CHECK(k.size(0) == call.batch && v.size(0) == call.batch && v.size(1) == call.heads_kv && v.size(2) == call.seq_kv &&
                  k.size(3) == call.dim && call.heads_kv > 0 && call.heads % call.heads_kv == 0,
              "the tiled kernel takes no such shapes");
  TORCH_CHECK(q.scalar_type() == k.scalar_type() && q.scalar_type() == v.scalar_type(), "the tiled kernel takes one dtype");
  call.scale = scale;
  call.threads = at::get_num_threads();
  call.device = q.is_cuda() ? q.device().index() : 0;
  call.q = OperandOf(q), call.k = OperandOf(k), call.v = OperandOf(v);
  return call;
}

void Run(tiled::Call* call, const at::Tensor& like, bool backward) {
  const bool cuda = like.is_cuda();
  const size_t bytes = cuda ? TiledCuda().workspace(call, backward) : tiled::CpuWorkspace(*call, backward);
  const at::Tensor workspace = at::empty({static_cast<int64_t>(bytes)}, like.options().dtype(at::kByte));
  call->workspace = workspace.data_ptr();
  if (!cuda) return backward ? tiled::CpuBackward(*call) : tiled::CpuForward(*call);
  const TiledCudaLibrary& library = TiledCuda();
  // Reference runs never leave the default stream.
  const char* const error = backward ? library.backward(call, nullptr) : library.forward(call, nullptr);
  TORCH_CHECK(error == nullptr, "CUDA error in the tiled kernel: ", error);
}

class TiledFunction : public torch::autograd::Function<TiledFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const std::optional<at::Tensor>& given_mask, double dropout, int64_t seed, bool causal,
                            double scale) {
    const at::Tensor mask = given_mask.value_or(at::Tensor());
    tiled::Call call = Describe(q, k, v, scale);
    call.seed = static_cast<uint64_t>(seed);
    call.dropout = dropout, call.causal = causal;
    if (mask.defined()) call.mask = OperandOf(Expanded(mask, call));
    const at::Tensor out = at::empty({call.batch, call.heads, call.seq_q, call.dim_v}, q.options());
    const auto computed = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor lse = at::empty({call.batch, call.heads, call.seq_q}, q.options().dtype(computed));
    call.out = OperandOf(out), call.lse = lse.data_ptr();
    if (out.numel() > 0) Run(&call, q, false);
    context->save_for_backward({q, k, v, mask, out, lse});
    context->saved_data["seed"] = static_cast<int64_t>(call.seed);
    context->saved_data["dropout"] = dropout;
    context->saved_data["causal"] = causal;
    context->saved_data["scale"] = scale;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list grads) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &q = saved[0], &k = saved[1], &v = saved[2], &mask = saved[3], &out = saved[4];
    tiled::Call call = Describe(q, k, v, context->saved_data["scale"].toDouble());
    call.seed = static_cast<uint64_t>(context->saved_data["seed"].toInt());
    call.dropout = context->saved_data["dropout"].toDouble();
    call.causal = context->saved_data["causal"].toBool();
    call.out = OperandOf(out), call.lse = saved[5].data_ptr();
    call.grad_out = OperandOf(grads[0]);
    variable_list results(8);
    tiled::Operand* const to[] = {&call.grad_q, &call.grad_k, &call.grad_v};
    for (size_t i = 0; i < 3; ++i) {
      if (!context->needs_input_grad(i)) continue;
      results[i] = out.numel() > 0 && saved[1].numel() > 0 ? at::empty(saved[i].sizes(), saved[i].options())
                                                           : at::zeros(saved[i].sizes(), saved[i].options());
      *to[i] = OperandOf(results[i]);
    }
    if (mask.defined()) {
      call.mask = OperandOf(Expanded(mask, call));
      if (context->needs_input_grad(3)) {
        results[3] = at::empty(mask.sizes(), mask.options());
        call.grad_mask = OperandOf(Expanded(results[3], call));
      }
    }
    if (out.numel() > 0) Run(&call, q, true);
    return results;
  }
};

}  // namespace

at::Tensor TiledAttention(const TensorCall& call) {
  TORCH_CHECK(call.q.dim() >= 2 && call.q.dim() <= 4 && call.k.dim() == call.q.dim() && call.v.dim() == call.q.dim(),
              "the tiled kernel takes two to four dimensions");
  const double scale = call.scale.value_or(1 / std::sqrt(static_cast<double>(call.q.size(-1))));
  at::Tensor out = TiledFunction::apply(Four(call.q), Four(call.k), Four(call.v), call.mask, call.dropout,
                                        static_cast<int64_t>(call.seed), call.causal, scale);
  while (out.dim() > call.q.dim()) out = out.squeeze(0);
  return out;
}

}  // namespace attntrace::reference
