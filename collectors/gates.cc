#include "collectors/gates.h"

#include <ATen/Context.h>
#include <ATen/NestedTensorImpl.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <string>

#include "collectors/gates_cuda.h"

namespace attntrace {
namespace {

// Collects what the checks say instead of printing it.
class Listener final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (!text.empty()) text += ' ';
    text += warning.msg();
  }
  std::string text;
};

// Which refusals this PyTorch's CPU selection makes is asked, not assumed: they moved between 2.6 and 2.15.
struct CpuSelection {
  bool takes_gqa = false;
  bool takes_unbatched = false;
};

bool Chooses(at::IntArrayRef q, at::IntArrayRef k, bool gqa) {
  const at::Tensor query = at::empty(q, at::kFloat), key = at::empty(k, at::kFloat);
  return at::_fused_sdp_choice(query, key, key, {}, 0.0, false, std::nullopt, gqa) ==
         static_cast<int64_t>(at::SDPBackend::flash_attention);
}

CpuSelection AskCpuSelection() noexcept {
  CpuSelection selection;
  const bool flash = at::globalContext().userEnabledFlashSDP();
  if (!flash) return selection;  // asked again by the caller once it is on
  try {
    selection.takes_gqa = Chooses({1, 4, 2, 8}, {1, 2, 2, 8}, true);
  } catch (...) {
  }
  try {
    selection.takes_unbatched = Chooses({2, 2, 8}, {2, 2, 8}, false);
  } catch (...) {
  }
  return selection;
}

const CpuSelection& Cpu() noexcept {
  static const CpuSelection selection = AskCpuSelection();
  return selection;
}

// CPU head sizes: not in a header, so the condition is stated here (aten/src/ATen/native/transformers/sdp_utils_cpp.cpp).
bool HeadSizesEqual(const sdp::sdp_params& params, bool debug) {
  const int64_t q = params.query.size(-1), k = params.key.size(-1), v = params.value.size(-1);
  if (q == k && q == v) return true;
  if (debug) {
    TORCH_WARN("Flash attention requires q,k,v to have the same last dimension. Got Query.size(-1): ", q, ", Key.size(-1): ", k,
               ", Value.size(-1): ", v, " instead.");
  }
  return false;
}

bool CpuDtype(const sdp::sdp_params& params, bool debug) {
  const std::vector<at::ScalarType> allowed{at::kFloat, at::kDouble, at::kBFloat16, at::kHalf};
  return sdp::check_tensor_dtype(params, allowed, debug);
}

bool CpuHeads(const sdp::sdp_params& params, bool debug) {
  return Cpu().takes_gqa ? sdp::check_batch_size_and_num_heads_dense<true>(params, debug)
                         : sdp::check_batch_size_and_num_heads_dense<false>(params, debug);
}

struct Check {
  bool (*passes)(const sdp::sdp_params&, bool);
  bool needs_four_dims;
  const char* silent;  // our words, for a check that refuses without any
};

bool MaskGradient(const sdp::sdp_params& params, bool) { return !params.attn_mask.has_value() || !params.attn_mask->requires_grad(); }

bool MaskShape(const sdp::sdp_params& params, bool debug) {  // its gradient is a condition of its own
  sdp::sdp_params detached = params;
  if (detached.attn_mask.has_value()) detached.attn_mask = detached.attn_mask->detach();
  return sdp::check_attn_mask_shape(detached, debug);
}

const Check kCpuChecks[] = {
    {sdp::check_runtime_disabled_flash, false, "Flash attention is switched off."},
    {sdp::check_nested_tensor, false, "The CPU kernel takes no nested tensor."},
    {sdp::check_for_dropout, false, "The CPU kernel has no dropout."},
    {sdp::check_tensor_shapes, false, "The kernel wants 4 dimensions."},
    {CpuHeads, true, "Batch size or heads of query, key and value differ."},
    {MaskGradient, true, "attn_mask requires a gradient, and the fused CPU kernel computes none for it."},
    {MaskShape, true, "attn_mask does not broadcast to (batch, heads, Sq, Sk) in 2 or 4 dimensions."},
    {HeadSizesEqual, false, "Head sizes of query, key and value differ."},
    {sdp::check_nonzero_sequence_lengths_dense, true, "A sequence length is zero."},
    {sdp::check_last_dim_stride_equals_1_dense<false>, false, "The last dimension is not contiguous."},
    {CpuDtype, false, "The dtype has no fused CPU kernel."},
};

void Ask(const Check& check, const sdp::sdp_params& params, std::vector<GateText>* gates) noexcept {
  Listener listener;
  const c10::WarningUtils::WarningHandlerGuard handler(&listener);
  const c10::WarningUtils::WarnAlways always(true);
  try {
    if (check.passes(params, true)) return;
  } catch (...) {  // a check that cannot be asked about such inputs is not the one that refused them
    return;
  }
  const bool ours = listener.text.empty();
  gates->push_back({Backend::kFlash, ours, ours ? std::string(check.silent) : listener.text});
}

}  // namespace

void TakeGates(const SdpaInputs& inputs, std::vector<GateText>* gates) noexcept {
  gates->clear();
  try {
    if (inputs.q.is_cuda()) return TakeCudaGates(inputs, gates);
    if (!inputs.q.is_cpu()) return;
    const at::DisableRecordFunctionGuard quiet;
    const at::NoGradGuard no_grad;  // views made here take no place in the program's autograd numbering
    sdp::sdp_params params{inputs.q, inputs.k, inputs.v, inputs.mask, inputs.dropout_p, inputs.causal, inputs.gqa};
    const bool nested = inputs.q.is_nested() || inputs.k.is_nested() || inputs.v.is_nested();
    bool four = !nested && inputs.q.dim() == 4 && inputs.k.dim() == 4 && inputs.v.dim() == 4;
    if (!nested && inputs.q.dim() == 3 && inputs.k.dim() == 3 && inputs.v.dim() == 3 && Cpu().takes_unbatched) {
      // This PyTorch adds the batch dimension before it asks.
      params.query = params.query.unsqueeze(0);
      params.key = params.key.unsqueeze(0);
      params.value = params.value.unsqueeze(0);
      while (params.attn_mask.has_value() && params.attn_mask->dim() < 4) params.attn_mask = params.attn_mask->unsqueeze(0);
      four = true;
    }
    for (const Check& check : kCpuChecks) {
      if (nested && check.passes != sdp::check_nested_tensor && check.passes != sdp::check_for_dropout &&
          check.passes != sdp::check_runtime_disabled_flash) {
        continue;
      }
      if (check.needs_four_dims && !four) continue;
      Ask(check, params, gates);
    }
  } catch (...) {  // no gates is what the report then says
  }
}

uint32_t SdpaSwitches() noexcept {
  const at::Context& context = at::globalContext();
  return (context.userEnabledFlashSDP() ? 1u : 0u) | (context.userEnabledMemEfficientSDP() ? 2u : 0u) |
         (context.userEnabledMathSDP() ? 4u : 0u) | (context.userEnabledCuDNNSDP() ? 8u : 0u) |
         (context.deterministicAlgorithms() ? 16u : 0u);
}

}  // namespace attntrace
