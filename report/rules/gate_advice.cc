// The change that takes a refusal away, as small as it can be.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/rules/gates.h"
#include "report/rules/support.h"
#include "report/text_units.h"

namespace attntrace::rules {
namespace {

void AdviseDropout(const Variant& variant, Finding* finding) {
  if (!variant.module().config_class().empty() && variant.module().selection_state() != "not-attention") {
    AddAdvice(finding, absl::StrCat("set the attention dropout of ", variant.module().config_class(), " to 0"),
              "config.attention_dropout = 0.0", Change::kNoDropout);
  } else {
    AddAdvice(finding, "pass no dropout", "dropout_p=0.0", Change::kNoDropout);
  }
  AddAdvice(finding, "move the dropout to the attention's output, which is Sq x D and not Sq x Sk", "", Change::kMoveDropout);
}

void AdviseHeadDims(const Variant& variant, Finding* finding) {
  const int64_t d = SizeAt(FindTensor(variant, "q"), -1), dv = SizeAt(FindTensor(variant, "v"), -1);
  if (dv < d) {
    AddAdvice(finding, "pad v to the head size of q and k, and cut the output back",
              absl::StrCat("v = F.pad(v, (0, ", d - dv, ")); out = F.scaled_dot_product_attention(q, k, v)[..., :", dv, "]"),
              Change::kPadHead);
  } else {
    AddAdvice(finding, "pad q and k to the head size of v, and keep the scale of the unpadded size",
              absl::StrCat("q, k = F.pad(q, (0, ", dv - d, ")), F.pad(k, (0, ", dv - d, ")); scale=", d, "**-0.5"),
              Change::kPadHead);
  }
}

void AdviseStride(const Variant& variant, Finding* finding) {
  for (const Tensor& tensor : variant.tensors()) {
    const int last = tensor.strides_size() - 1;
    if (tensor.role() == "mask" || last < 0 || tensor.strides(last) == 1) continue;
    AddAdvice(finding,
              absl::StrCat("make ", tensor.role(), " contiguous in its last dimension (its strides are ",
                           FormatShape(tensor.strides()), ")"),
              absl::StrCat(tensor.role(), " = ", tensor.role(), ".contiguous()"), Change::kContiguous);
  }
}

void AdviseRank(const Variant& variant, Finding* finding) {
  const Tensor* q = FindTensor(variant, "q");
  if (q != nullptr && q->sizes_size() == 3) {
    AddAdvice(finding, "give q, k and v a batch or a head dimension of one",
              "out = F.scaled_dot_product_attention(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1)).squeeze(1)",
              Change::kUnsqueeze);
  } else if (q != nullptr && q->sizes_size() > 4) {
    AddAdvice(finding, "fold the leading dimensions of q, k and v into one", "q = q.flatten(0, -4)");
  } else {
    AddAdvice(finding, "bring q, k and v to (batch, heads, length, head size)");
  }
}

void AdviseGqa(const Variant& variant, Finding* finding) {
  const Tensor *q = FindTensor(variant, "q"), *k = FindTensor(variant, "k");
  const int64_t heads = SizeAt(q, -3), groups = SizeAt(k, -3);
  if (heads <= 0 || groups <= 0 || heads % groups != 0 || heads == groups) {
    AddAdvice(finding, "give q, k and v the same number of heads");
    return;
  }
  const int64_t times = heads / groups;
  AddAdvice(finding, absl::StrCat("repeat the heads of k and v ", times, " times and leave enable_gqa out"),
            absl::StrCat("k, v = k.repeat_interleave(", times, ", -3), v.repeat_interleave(", times, ", -3)"),
            Change::kRepeatHeads);
}

void AdviseDisabled(const Refusal& refusal, Finding* finding) {
  for (const std::string& backend : refusal.backends) {
    const std::string call =
        absl::StrCat("torch.backends.cuda.enable_", backend == "efficient" ? "mem_efficient" : backend, "_sdp(True)");
    AddAdvice(finding,
              absl::StrCat(backend, " was switched off at this call, by sdpa_kernel around it or by a flag: let it in there"),
              call, Change::kAllow);
  }
}

}  // namespace

void Advise(const Refusal& refusal, const Variant& variant, Finding* finding) {
  const Tensor* q = FindTensor(variant, "q");
  const bool cpu = q != nullptr && q->device() == "cpu";
  switch (refusal.kind) {
    case GateKind::kDisabled:
      return AdviseDisabled(refusal, finding);
    case GateKind::kDropout:
      return AdviseDropout(variant, finding);
    case GateKind::kHeadDimsDiffer:
      return AdviseHeadDims(variant, finding);
    case GateKind::kStride:
      return AdviseStride(variant, finding);
    case GateKind::kRank:
      return AdviseRank(variant, finding);
    case GateKind::kGqa:
      return AdviseGqa(variant, finding);
    case GateKind::kNested:
      return AddAdvice(finding, "use the jagged layout with lengths above zero, or pad and mask",
                       "torch.nested.nested_tensor(parts, layout=torch.jagged)");
    case GateKind::kEmptySequence:
      return AddAdvice(finding, "skip the call when there is nothing to attend to; it stores nothing of note");
    case GateKind::kMaskGrad:
      AddAdvice(finding, "detach the mask where it is not learned", "attn_mask=mask.detach()", Change::kDetachMask);
      return AddAdvice(finding, "where the bias is learned, add it in a score_mod of a compiled flex_attention");
    case GateKind::kMaskShape:
      return AddAdvice(finding, "give the mask four dimensions, each of the call's size or 1", "attn_mask=mask[:, None]");
    case GateKind::kMask:
      return AddAdvice(finding, "pass no mask where it is plain causal", "attn_mask=None, is_causal=True", Change::kDropMask);
    case GateKind::kBatch:
      return AddAdvice(finding, "expand q, k and v to one batch size",
                       "k, v = k.expand(q.size(0), -1, -1, -1), v.expand(q.size(0), -1, -1, -1)");
    case GateKind::kHeadDim:
      return AddAdvice(finding, "pad the head to the next multiple of 8; over 256 only some kernels run", "", Change::kPadHead);
    case GateKind::kDtype:
      return AddAdvice(
          finding, cpu ? "cast q, k and v to one floating type of at most 32 bits" : "cast q, k and v to bfloat16 or float16",
          cpu ? "q, k, v = q.float(), k.float(), v.float()" : "q, k, v = q.bfloat16(), k.bfloat16(), v.bfloat16()",
          cpu ? Change::kCastFloat32 : Change::kCastBFloat16);
    case GateKind::kCausalLengths:
      return AddAdvice(finding,
                       "give k and v the length of q where the rest is unused, or use flex_attention with a BlockMask");
    case GateKind::kUnavailable:
    case GateKind::kOther:
      return;
  }
}

}  // namespace attntrace::rules
