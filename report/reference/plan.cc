#include "report/reference/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"

namespace attntrace {
namespace {

using reference::Request;
using reference::TensorSpec;

const Tensor* Find(const Variant& variant, absl::string_view role) {
  for (const Tensor& tensor : variant.tensors()) {
    if (tensor.role() == role) return &tensor;
  }
  return nullptr;
}

bool Read(const Variant& variant, absl::string_view role, TensorSpec* spec) {
  const Tensor* const tensor = Find(variant, role);
  if (tensor == nullptr || tensor->sizes_size() < 2 || tensor->sizes_size() != tensor->strides_size()) return false;
  if (!tensor->layout().empty() && tensor->layout() != "strided") return false;
  spec->sizes.assign(tensor->sizes().begin(), tensor->sizes().end());
  spec->strides.assign(tensor->strides().begin(), tensor->strides().end());
  spec->dtype = tensor->dtype();
  spec->requires_grad = tensor->requires_grad();
  return std::all_of(spec->sizes.begin(), spec->sizes.end(), [](int64_t size) { return size > 0; });
}

bool IsWorthIt(const Variant& variant) {
  return variant.phase() != "backward" && (variant.path() == "dense" || variant.path() == "quadratic") &&
         !reference::PathOf(variant.backend()).empty();
}

bool Describe(const Variant& variant, bool backward, ReferenceCase* one) {
  Request& call = one->call;
  if (!Read(variant, "q", &call.q) || !Read(variant, "k", &call.k) || !Read(variant, "v", &call.v)) return false;
  const Tensor& q = *Find(variant, "q");
  if (q.device() != "cpu" && !absl::StartsWith(q.device(), "cuda")) return false;
  call.device = q.device();
  call.dropout = variant.dropout_p();
  call.causal = variant.causal();
  call.gqa = variant.gqa();
  if (variant.scale_given()) call.scale = variant.scale();
  one->observed_path = reference::PathOf(variant.backend());
  one->flex = variant.backend() == "flex-dense";
  // flex_attention's block mask is no tensor; the reference makes a causal one anew, and leaves any other out.
  if (one->flex && variant.mask_kind() == "block-mask") call.mask_content = variant.mask_content();
  if (!one->flex && variant.mask_kind() != "none" && !variant.mask_kind().empty()) {
    TensorSpec mask;
    if (!Read(variant, "mask", &mask)) return false;
    call.mask = mask;
    call.mask_content = variant.mask_content().empty() ? "unread" : variant.mask_content();
  }
  call.backward = backward;
  if (backward && !call.q.requires_grad && !call.k.requires_grad && !call.v.requires_grad) {
    call.q.requires_grad = call.k.requires_grad = call.v.requires_grad = true;
  }
  call.check = true;
  one->process = variant.process();
  return true;
}

}  // namespace

std::vector<ReferenceCase> PlanReference(const Report& report) {
  std::map<uint32_t, int64_t> backward_peaks;  // by the forward's id
  std::set<uint32_t> named;
  for (const Finding& finding : report.findings()) named.insert(finding.variants().begin(), finding.variants().end());
  for (const Variant& variant : report.variants()) {
    if (variant.phase() != "backward" || variant.forward() == 0) continue;
    int64_t& peak = backward_peaks[variant.forward()];
    peak = std::max(peak, variant.peak_bytes());
  }
  std::map<std::string, size_t> known;
  std::vector<ReferenceCase> cases;
  for (const Variant& variant : report.variants()) {
    if (!IsWorthIt(variant) || named.count(variant.id()) == 0) continue;
    ReferenceCase one;
    const auto backward = backward_peaks.find(variant.id());
    if (!Describe(variant, backward != backward_peaks.end(), &one)) continue;
    const auto [at, fresh] = known.try_emplace(one.observed_path + Encode(one.call), cases.size());
    if (fresh) cases.push_back(std::move(one));
    ReferenceCase& joined = cases[at->second];
    joined.variants.push_back(variant.id());
    const int64_t kept = backward == backward_peaks.end() ? 0 : variant.kept_bytes() + backward->second;
    const int64_t peak = std::max(variant.peak_bytes(), kept);
    joined.observed_bytes = std::max(joined.observed_bytes, peak);
    joined.weight += peak + variant.kept_bytes() * std::max(0, variant.layers_size() - 1);
  }
  std::stable_sort(cases.begin(), cases.end(),
                   [](const ReferenceCase& a, const ReferenceCase& b) { return a.weight > b.weight; });
  return cases;
}

ReferenceRun MakeRun(const std::vector<uint32_t>& variants, const reference::Done& done) {
  const reference::Request& request = done.step.request;
  const reference::Response& response = done.response;
  ReferenceRun run;
  run.mutable_variants()->Add(variants.begin(), variants.end());
  run.set_purpose(done.step.purpose);
  run.set_path(request.path);
  run.set_backend(response.backend);
  run.set_status(response.status);
  run.set_words(response.words);
  run.mutable_changes()->Add(request.changes.begin(), request.changes.end());
  run.set_alters_result(AltersResult(request));
  run.set_device(request.device);
  run.set_forward_peak_bytes(response.forward_peak_bytes);
  run.set_backward_peak_bytes(response.backward_peak_bytes);
  run.set_total_peak_bytes(response.total_peak_bytes);
  run.set_kept_bytes(response.kept_bytes);
  run.set_workspace_bytes(response.workspace_bytes);
  run.set_forward_ns(response.forward_ns);
  run.set_backward_ns(response.backward_ns);
  run.set_repeats(response.repeats);
  if (response.max_difference) {
    run.set_checked(true);
    run.set_max_difference(*response.max_difference);
  }
  return run;
}

}  // namespace attntrace
