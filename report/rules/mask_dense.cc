// mask-dense: a fused kernel was fed a mask that holds a value for every query and key.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "report/rules/rules.h"
#include "report/rules/support.h"
#include "report/text_units.h"

namespace attntrace {
namespace {

using namespace rules;

// From here on the mask is a loss worth a warning.
constexpr int64_t kWarningBytes = int64_t{64} << 20;

bool IsSquareMask(const Variant& variant) {
  if (variant.path() != "fused" && variant.path() != "quadratic") return false;
  if (variant.mask_kind() != "bool" && variant.mask_kind() != "float") return false;
  const Tensor* mask = FindTensor(variant, "mask");
  if (mask == nullptr || mask->sizes_size() < 2) return variant.path() == "quadratic";
  const int rows = mask->sizes_size() - 2;
  // One row for all queries, by its size or by a stride of 0, takes no memory of Sq x Sk.
  if (mask->sizes(rows) <= 1 || mask->sizes(rows + 1) <= 1) return false;
  return mask->strides_size() != mask->sizes_size() || (mask->strides(rows) != 0 && mask->strides(rows + 1) != 0);
}

void Judge(const Variant& variant, Finding* finding) {
  const std::string& content = variant.mask_content();
  std::string what = "It was not read, so it may say no more than is_causal does.";
  if (content == "plain-causal") {
    what = "It is plain causal.";
    finding->set_title("a fused kernel was fed a mask that is plain causal");
    AddAdvice(finding, "drop the mask and say so", "attn_mask=None, is_causal=True", Change::kDropMask);
  } else if (content == "all-true") {
    what = "It hides nothing.";
    finding->set_title("a fused kernel was fed a mask that hides nothing");
    AddAdvice(finding, "drop the mask", "attn_mask=None", Change::kDropMask);
  } else if (content == "padding") {
    what = "It hides padding only: every query has the same row.";
    AddAdvice(finding, "pass one row for all queries; it broadcasts and takes Sk values instead of Sq x Sk",
              "attn_mask=keep[:, None, None, :]");
    AddAdvice(finding, "drop the padding: varlen_attn, flash-attn's varlen functions, or nested jagged tensors");
  } else if (content == "causal-padding") {
    what = "It is causal with padding.";
    AddAdvice(finding, "where the padding is on the right, is_causal alone gives the same result for every real token",
              "attn_mask=None, is_causal=True");
    AddAdvice(finding, "drop the padding (varlen, nested jagged tensors), or use a BlockMask with a compiled flex_attention");
  } else if (content == "other") {
    what = "It is neither causal nor padding.";
    AddAdvice(finding, "a pattern that can be computed from positions fits a BlockMask with a compiled flex_attention");
  }
  if (content == "unread" || content.empty())
    AddAdvice(finding, "where it is plain causal, drop the mask and say so", "attn_mask=None, is_causal=True",
              Change::kDropMask);
  const Tensor* mask = FindTensor(variant, "mask");
  finding->set_why(absl::StrCat("The ", variant.mask_kind(), " mask", mask == nullptr ? "" : " " + FormatShape(mask->sizes()),
                                " holds ", FormatBytes(static_cast<int64_t>(variant.mask_bytes())), ". ", what));
}

}  // namespace

void CheckMaskDense(const Report& report, std::vector<Finding>* findings) {
  const auto key = [](const Variant& variant) { return absl::StrCat(variant.mask_kind(), "\n", variant.mask_content()); };
  for (const Cause& cause : FindCauses(report, IsSquareMask, key)) {
    const auto by_mask = [](const Variant* a, const Variant* b) { return a->mask_bytes() < b->mask_bytes(); };
    const Variant& largest = **std::max_element(cause.variants.begin(), cause.variants.end(), by_mask);
    const auto bytes = static_cast<int64_t>(largest.mask_bytes());
    Finding finding = Describe(cause);
    finding.clear_gates();  // They tell of other backends, not of the mask.
    AddBytes(&finding, "mask bytes", bytes);
    AddText(&finding, "mask content", largest.mask_content().empty() ? "unread" : largest.mask_content());
    if (bytes >= kWarningBytes) finding.set_severity("warning");
    Judge(largest, &finding);
    findings->push_back(std::move(finding));
  }
}

}  // namespace attntrace
