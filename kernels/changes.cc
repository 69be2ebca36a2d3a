#include "kernels/changes.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

namespace attntrace::reference {
namespace {

void Cast(TensorCall* call, at::ScalarType type) {
  call->q = call->q.to(type), call->k = call->k.to(type), call->v = call->v.to(type);
  if (call->mask && call->mask->is_floating_point()) call->mask = call->mask->to(type);
}

// Zeros beyond the head change no product; the scale stays that of the unpadded size. A multiple of 8 suits every kernel.
void PadHead(TensorCall* call) {
  if (!call->scale) call->scale = 1 / std::sqrt(static_cast<double>(call->q.size(-1)));
  const int64_t size = (std::max(call->q.size(-1), call->v.size(-1)) + 7) / 8 * 8;
  for (at::Tensor* tensor : {&call->q, &call->k, &call->v}) {
    if (tensor->size(-1) < size) *tensor = at::constant_pad_nd(*tensor, {0, size - tensor->size(-1)});
  }
}

void RepeatHeads(TensorCall* call) {
  call->gqa = false;
  if (call->q.dim() < 3 || call->k.size(-3) == 0 || call->q.size(-3) == call->k.size(-3)) return;
  const int64_t times = call->q.size(-3) / call->k.size(-3);
  call->k = call->k.repeat_interleave(times, -3), call->v = call->v.repeat_interleave(times, -3);
}

void Unsqueeze(TensorCall* call) {
  call->q = call->q.unsqueeze(1), call->k = call->k.unsqueeze(1), call->v = call->v.unsqueeze(1);
  if (call->mask && call->mask->dim() == 3) call->mask = call->mask->unsqueeze(1);
}

void DropMask(TensorCall* call) {
  // The content was read in the traced program; a square lower triangle is causal, anything else that is dropped says nothing.
  const at::Tensor& mask = *call->mask;
  const at::Tensor visible = mask.scalar_type() == at::kBool ? mask : mask == 0;
  call->causal = call->causal || !visible.all().item<bool>();
  call->mask.reset();
}

}  // namespace

void Change(const std::string& name, ChangedCall* changed) {
  TensorCall& call = changed->call;
  if (name == "allow" || name == "sdpa" || name == "compile") {  // the path says it all
  } else if (name == "unsqueeze") {
    Unsqueeze(&call);
  } else if (name == "contiguous") {
    call.q = call.q.contiguous(), call.k = call.k.contiguous(), call.v = call.v.contiguous();
  } else if (name == "drop-mask") {
    if (call.mask) DropMask(&call);
  } else if (name == "mask-dtype") {
    if (call.mask && call.mask->is_floating_point()) call.mask = call.mask->to(call.q.scalar_type());
  } else if (name == "repeat-heads") {
    RepeatHeads(&call);
  } else if (name == "pad-head") {
    PadHead(&call);
  } else if (name == "cast-bfloat16") {
    Cast(&call, at::kBFloat16);
  } else if (name == "cast-float32") {
    Cast(&call, at::kFloat);
  } else if (name == "detach-mask") {
    if (call.mask) call.mask = call.mask->detach();
  } else if (name == "move-dropout") {
    changed->output_dropout = call.dropout;
    call.dropout = 0;
  } else if (name == "no-dropout") {
    call.dropout = 0;
  } else {
    TORCH_CHECK(false, "no change ", name);
  }
}

at::Tensor Restore(const TensorCall& original, const ChangedCall& changed, at::Tensor output) {
  if (changed.output_dropout > 0) output = at::dropout(output, changed.output_dropout, true);
  if (output.size(-1) != original.v.size(-1)) output = output.narrow(-1, 0, original.v.size(-1));
  if (output.dim() != original.q.dim()) output = output.squeeze(1);
  return output.to(original.q.scalar_type());
}

}  // namespace attntrace::reference
