#include "report/rules/gates.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/rules/support.h"
#include "report/text_units.h"

namespace attntrace::rules {
namespace {

// Lower-case parts of the texts. First match wins: the special before the general.
struct Needle {
  GateKind kind;
  const char* text;
};
constexpr Needle kNeedles[] = {
    {GateKind::kDisabled, "runtime disabled"},
    {GateKind::kDisabled, "switched off"},
    {GateKind::kUnavailable, "not compiled with"},
    {GateKind::kUnavailable, "gpu architectures"},
    {GateKind::kUnavailable, "too old"},
    {GateKind::kUnavailable, "not available"},
    {GateKind::kNested, "nested"},
    {GateKind::kNested, "nt inputs"},
    {GateKind::kNested, "ragged"},
    {GateKind::kMaskShape, "attn mask shapes"},
    {GateKind::kMaskShape, "mask does not broadcast"},
    {GateKind::kRank, "4 dimension"},
    {GateKind::kRank, "4-d"},
    {GateKind::kEmptySequence, "zero seq_len"},
    {GateKind::kEmptySequence, "seq_len == 0"},
    {GateKind::kEmptySequence, "sequence length is zero"},
    {GateKind::kDropout, "dropout"},
    {GateKind::kMaskGrad, "mask requires a gradient"},
    {GateKind::kStride, "stride"},
    {GateKind::kStride, "not contiguous"},
    {GateKind::kMask, "attn_mask"},
    {GateKind::kGqa, "num_heads"},
    {GateKind::kGqa, "number of heads"},
    {GateKind::kGqa, "heads of query"},
    {GateKind::kGqa, "gqa"},
    {GateKind::kGqa, "grouped query"},
    {GateKind::kBatch, "batch_size"},
    {GateKind::kCausalLengths, "is_causal"},
    {GateKind::kDtype, "dtype"},
    {GateKind::kHeadDim, "last dimension"},
    {GateKind::kHeadDim, "head_dim"},
    {GateKind::kHeadDim, "head size"},
};

bool HeadDimsDiffer(const Variant& variant) {
  const int64_t d = SizeAt(FindTensor(variant, "q"), -1), dv = SizeAt(FindTensor(variant, "v"), -1);
  return d >= 0 && dv >= 0 && d != dv;
}

// The tensors of q, k, v that `is` holds for: "q", "q and k".
template <typename Predicate>
std::vector<std::string> Roles(const Variant& variant, Predicate is) {
  std::vector<std::string> roles;
  for (const Tensor& tensor : variant.tensors()) {
    if (tensor.role() != "mask" && is(tensor)) roles.push_back(tensor.role());
  }
  return roles;
}

bool HasStridedLast(const Tensor& tensor) {
  return tensor.strides_size() > 0 && tensor.strides(tensor.strides_size() - 1) != 1 && SizeAt(&tensor, -1) > 1;
}

bool MaskRequiresGrad(const Variant& variant) {
  const Tensor* mask = FindTensor(variant, "mask");
  return mask != nullptr && mask->requires_grad();
}

// What fused kernels refuse on every device or on the call's own; asked only where no gate was read.
std::vector<GateKind> Suspects(const Variant& variant) {
  const Tensor* q = FindTensor(variant, "q");
  const bool cpu = q != nullptr && q->device() == "cpu";
  const auto nested = Roles(variant, [](const Tensor& tensor) { return absl::StartsWith(tensor.layout(), "nested"); });
  if (!nested.empty()) return {GateKind::kNested};
  std::vector<GateKind> kinds;
  if (q != nullptr && q->sizes_size() > 0 && q->sizes_size() != 4) kinds.push_back(GateKind::kRank);
  if (SeqKv(variant) == 0 || SeqQ(variant) == 0) kinds.push_back(GateKind::kEmptySequence);
  if (cpu && variant.dropout_p() > 0) kinds.push_back(GateKind::kDropout);
  if (cpu && MaskRequiresGrad(variant)) kinds.push_back(GateKind::kMaskGrad);
  if (cpu && HeadDimsDiffer(variant)) kinds.push_back(GateKind::kHeadDimsDiffer);
  if (!Roles(variant, HasStridedLast).empty()) kinds.push_back(GateKind::kStride);
  if (q != nullptr && q->dtype() == "float64" && !cpu) kinds.push_back(GateKind::kDtype);
  return kinds;
}

}  // namespace

GateKind KindOf(const Gate& gate, const Variant& variant) {
  const std::string text = absl::AsciiStrToLower(gate.text());
  // A mask that requires grad is refused without a word in PyTorch; the words are the agent's, and may change.
  if (gate.words() == "attntrace" && MaskRequiresGrad(variant) && absl::StrContains(text, "grad")) return GateKind::kMaskGrad;
  for (const Needle& needle : kNeedles) {
    if (!absl::StrContains(text, needle.text)) continue;
    return needle.kind == GateKind::kHeadDim && HeadDimsDiffer(variant) ? GateKind::kHeadDimsDiffer : needle.kind;
  }
  return GateKind::kOther;
}

std::vector<Refusal> RefusalsOf(const Variant& variant) {
  // Unknown texts stay apart; of the known kinds one is enough.
  std::map<std::pair<GateKind, std::string>, Refusal> refusals;
  for (const Gate& gate : variant.gates()) {
    const GateKind kind = KindOf(gate, variant);
    Refusal& refusal = refusals[{kind, kind == GateKind::kOther ? gate.text() : ""}];
    refusal.kind = kind;
    if (refusal.text.empty()) refusal.text = gate.text();
    if (std::find(refusal.backends.begin(), refusal.backends.end(), gate.backend()) == refusal.backends.end()) {
      refusal.backends.push_back(gate.backend());
    }
  }
  std::vector<Refusal> result;
  for (auto& [key, refusal] : refusals) result.push_back(std::move(refusal));
  if (result.empty()) {
    for (const GateKind kind : Suspects(variant)) result.push_back({kind, {}, ""});
  }
  return result;
}

std::string InWords(const Refusal& refusal, const Variant& variant) {
  const Tensor *q = FindTensor(variant, "q"), *k = FindTensor(variant, "k"), *v = FindTensor(variant, "v");
  std::string words;
  switch (refusal.kind) {
    case GateKind::kDisabled:
      words = "switched off";
      break;
    case GateKind::kNested:
      words = absl::StrCat("nested tensors", q == nullptr                     ? ""
                                             : q->layout() == "nested-jagged" ? " (jagged layout)"
                                                                              : " (strided layout)");
      break;
    case GateKind::kRank:
      words = q == nullptr || q->sizes_size() == 4 ? "q, k, v are not all 4-D"
                                                   : absl::StrCat("q, k, v are ", q->sizes_size(), "-D, not 4-D");
      break;
    case GateKind::kEmptySequence:
      words = SeqKv(variant) == 0 ? "no keys at all (Sk=0)" : "an empty sequence (Sq=0)";
      break;
    case GateKind::kDropout:
      words = absl::StrCat("dropout_p=", variant.dropout_p());
      if (variant.module().training() == "yes" && variant.module().selection_state() != "not-attention" &&
          !variant.module().config_class().empty()) {
        absl::StrAppend(&words, ", from attention_dropout in train mode");
      }
      break;
    case GateKind::kMaskGrad:
      words = "the mask requires grad";
      break;
    case GateKind::kMaskShape:
      if (const Tensor* mask = FindTensor(variant, "mask")) {
        words = absl::StrCat("a mask of shape ", FormatShape(mask->sizes()), " does not broadcast as the kernel needs");
      }
      break;
    case GateKind::kMask:
      words = "a mask was passed";
      break;
    case GateKind::kGqa:
      if (q != nullptr && k != nullptr && q->sizes_size() >= 3 && k->sizes_size() >= 3) {
        words = absl::StrCat("grouped heads, ", SizeAt(q, -3), " of Q to ", SizeAt(k, -3), " of K/V");
      }
      break;
    case GateKind::kHeadDimsDiffer:
      words = absl::StrCat("value head size ", SizeAt(v, -1), " is not that of q and k, ", SizeAt(q, -1));
      break;
    case GateKind::kHeadDim:
      if (q != nullptr) words = absl::StrCat("head size ", SizeAt(q, -1));
      break;
    case GateKind::kStride: {
      const auto roles = Roles(variant, HasStridedLast);
      if (!roles.empty()) words = absl::StrCat("the last dimension of ", JoinWords(roles), " does not have stride 1");
      break;
    }
    case GateKind::kDtype:
      if (q != nullptr) words = absl::StrCat("dtype ", q->dtype());
      break;
    case GateKind::kCausalLengths:
      words = absl::StrCat("is_causal with Sq=", SeqQ(variant), ", Sk=", SeqKv(variant));
      break;
    case GateKind::kUnavailable:
    case GateKind::kBatch:
    case GateKind::kOther:
      break;
  }
  if (words.empty()) words = refusal.text;
  return refusal.backends.empty() ? words : absl::StrCat(absl::StrJoin(refusal.backends, ", "), ": ", words);
}

bool ByRequest(const Variant& variant) {
  std::map<std::string, bool> off;
  for (const Gate& gate : variant.gates()) off[gate.backend()] |= KindOf(gate, variant) == GateKind::kDisabled;
  return !off.empty() && std::all_of(off.begin(), off.end(), [](const auto& entry) { return entry.second; });
}

}  // namespace attntrace::rules
