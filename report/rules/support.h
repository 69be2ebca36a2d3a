// What the rules share: reading a variant, putting variants together into causes, and the part of a finding that is the same
// in every rule. Pure functions of the Report; pointers stay valid as long as it does.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "kernels/protocol.h"
#include "report/report.pb.h"

namespace attntrace::rules {

using reference::Change;

// ---- One variant ----------------------------------------------------------------------------------------------------------
const Tensor* FindTensor(const Variant& variant, absl::string_view role);

// Elements along one dimension, counted from the last (-1); -1 where the tensor is not known or has no such dimension.
int64_t SizeAt(const Tensor* tensor, int from_last);

// Length of the queries and of the keys; -1 unknown (nested tensors, or nothing was read).
int64_t SeqQ(const Variant& variant);
int64_t SeqKv(const Variant& variant);

// "q (1, 8, 512, 64), k, v (1, 2, 512, 64), bfloat16 on cpu".
std::string DescribeTensors(const Variant& variant);
std::string DescribeTensors(const google::protobuf::RepeatedPtrField<Tensor>& tensors);

// "scores (1, 8, 512, 512), 4 MiB", or empty where no block of that size was seen. (A fused
// call may allocate one by chance, an output for one.)
std::string DescribeScores(const Variant& variant);

// The backward of a forward that is known: what stored its scores is told with that forward, or by backward-dense.
bool HasForward(const Variant& variant);

// SDPA by any of its operators.
bool IsSdpa(const Variant& variant);

// ---- Call paths -----------------------------------------------------------------------------------------------------------
const CallPath* FindPath(const Report& report, const Variant& variant);
// Innermost frame that is neither PyTorch's nor Python's own, and innermost frame of the user; null where there is none.
const Frame* CallSite(const Report& report, const Variant& variant);
const Frame* UserLine(const Report& report, const Variant& variant);
// "train.py:88", the file without its folders; empty for null.
std::string Place(const Frame* frame);
// "transformers", or empty where the call site is the user's own code or unknown.
std::string OwningLibrary(const Report& report, const Variant& variant);
// "LlamaAttention", or empty.
const std::string& ModuleClass(const Variant& variant);

// ---- Causes ---------------------------------------------------------------------------------------------------------------
// Variants that one change would repair, the one to show first at the front. A backward is in its forward's cause.
struct Cause {
  std::vector<const Variant*> variants;
  const Variant& first() const { return *variants.front(); }
};

// Groups what `picks` takes by call site, user's line, module class, backend and `key` (what else tells causes apart for this
// rule; gates, for one). A recompute runs under another user's line than its forward (that of backward()) and joins it all
// the same. In order of the first variant's id.
std::vector<Cause> FindCauses(const Report& report, absl::FunctionRef<bool(const Variant&)> picks,
                              absl::FunctionRef<std::string(const Variant&)> key);

// A finding with everything but its verdict: phases, variants, counts, peaks, layers, gates, `ran`, and the evidence that is
// known of every call.
Finding Describe(const Cause& cause);

// ---- Parts of a finding ---------------------------------------------------------------------------------------------------
void AddBytes(Finding* finding, absl::string_view name, int64_t bytes);
void AddCount(Finding* finding, absl::string_view name, int64_t count);
void AddText(Finding* finding, absl::string_view name, absl::string_view text);
// `change`: what a reference run does to prove it.
void AddAdvice(Finding* finding, absl::string_view text, absl::string_view code = "", Change change = Change::kNone);
// Of gates that differ in numbers only (sizes, strides) the first. `seen` is empty at the first call for a finding.
void AddGates(const google::protobuf::RepeatedPtrField<Gate>& gates, std::set<std::string>* seen, Finding* finding);

// "a", "a and b", "a, b and c".
std::string JoinWords(const std::vector<std::string>& words);

}  // namespace attntrace::rules
