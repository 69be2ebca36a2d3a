// Gates in plain words: why SDPA's fused kernels refused a call, with the call's own values, and the smallest change that lets
// one run. PyTorch's texts are told apart by the words that stay the same across versions; an unknown text is quoted.
#pragma once

#include <string>
#include <vector>

#include "report/report.pb.h"

namespace attntrace::rules {

enum class GateKind {
  kDisabled,     // switched off by a flag or by sdpa_kernel
  kUnavailable,  // not built, or not for this device: nothing the caller can change
  kNested,
  kRank,  // q, k, v not 4-D
  kEmptySequence,
  kDropout,
  kMaskGrad,
  kMaskShape,
  kMask,            // no mask at all is taken
  kGqa,             // fewer K/V heads than Q heads
  kBatch,           // batch sizes differ
  kHeadDimsDiffer,  // Dv is not D
  kHeadDim,         // too large or not a multiple
  kStride,
  kDtype,
  kCausalLengths,  // is_causal with Sq != Sk
  kOther,
};

GateKind KindOf(const Gate& gate, const Variant& variant);

// One cause with the backends that it ruled out.
struct Refusal {
  GateKind kind;
  std::vector<std::string> backends;
  std::string text;  // PyTorch's own, of the first
};

// The gates of a variant by kind, in the order of GateKind. Where no gate was read: what the call itself shows that fused
// kernels are known to refuse, with no backend named.
std::vector<Refusal> RefusalsOf(const Variant& variant);

// "flash: dropout_p=0.1, from attention_dropout in train mode".
std::string InWords(const Refusal& refusal, const Variant& variant);

// Adds the change that takes this refusal away. Environment.settings tell where a switch stands.
void Advise(const Refusal& refusal, const Variant& variant, Finding* finding);

// Every backend that has a gate is switched off: the one that ran was pinned on purpose.
bool ByRequest(const Variant& variant);

}  // namespace attntrace::rules
