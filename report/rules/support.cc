#include "report/rules/support.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/text_units.h"

namespace attntrace::rules {
namespace {

const Frame* FrameAt(const Report& report, const CallPath& path, int32_t position) {
  if (position < 0 || position >= path.frames_size()) return nullptr;
  const uint32_t frame = path.frames(position);
  return frame < static_cast<uint32_t>(report.frames_size()) ? &report.frames(frame) : nullptr;
}

}  // namespace

const Tensor* FindTensor(const Variant& variant, absl::string_view role) {
  for (const Tensor& tensor : variant.tensors()) {
    if (tensor.role() == role) return &tensor;
  }
  return nullptr;
}

int64_t SizeAt(const Tensor* tensor, int from_last) {
  if (tensor == nullptr || tensor->sizes_size() + from_last < 0) return -1;
  return tensor->sizes(tensor->sizes_size() + from_last);
}

int64_t SeqQ(const Variant& variant) { return SizeAt(FindTensor(variant, "q"), -2); }

int64_t SeqKv(const Variant& variant) {
  const int64_t length = SizeAt(FindTensor(variant, "k"), -2);
  return length >= 0 ? length : SizeAt(FindTensor(variant, "v"), -2);
}

std::string DescribeTensors(const Variant& variant) { return DescribeTensors(variant.tensors()); }

std::string DescribeTensors(const google::protobuf::RepeatedPtrField<Tensor>& tensors) {
  std::vector<std::string> parts;
  std::string roles, shape;
  const Tensor* last = nullptr;
  for (const char* role : {"q", "k", "v"}) {
    const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& one) { return one.role() == role; });
    if (at == tensors.end()) continue;
    const Tensor* tensor = &*at;
    const std::string text = tensor->sizes_size() > 0 ? FormatShape(tensor->sizes()) : tensor->layout();
    if (!roles.empty() && text != shape) {
      parts.push_back(absl::StrCat(roles, " ", shape));
      roles.clear();
    }
    absl::StrAppend(&roles, roles.empty() ? "" : ", ", role);
    shape = text;
    last = tensor;
  }
  if (last == nullptr) return "";
  parts.push_back(absl::StrCat(roles, " ", shape));
  return absl::StrCat(absl::StrJoin(parts, ", "), ", ", last->dtype(), " on ", last->device());
}

std::string DescribeScores(const Variant& variant) {
  if (variant.score_bytes() <= 0 || variant.path() != "dense") return "";
  const Tensor* q = FindTensor(variant, "q");
  const int64_t keys = SeqKv(variant);
  if (q == nullptr || q->sizes_size() < 2 || keys < 0) return absl::StrCat("scores of ", FormatBytes(variant.score_bytes()));
  std::vector<int64_t> sizes(q->sizes().begin(), q->sizes().end());
  sizes.back() = keys;
  return absl::StrCat("scores ", FormatShape(sizes), ", ", FormatBytes(variant.score_bytes()));
}

bool HasForward(const Variant& variant) { return variant.phase() == "backward" && variant.forward() != 0; }

bool IsSdpa(const Variant& variant) { return absl::StrContains(variant.operator_(), "scaled_dot_product"); }

const CallPath* FindPath(const Report& report, const Variant& variant) {
  const uint32_t index = variant.call_path();
  if (index == 0 || index > static_cast<uint32_t>(report.call_paths_size())) return nullptr;
  return &report.call_paths(static_cast<int>(index) - 1);
}

const Frame* CallSite(const Report& report, const Variant& variant) {
  const CallPath* path = FindPath(report, variant);
  return path == nullptr ? nullptr : FrameAt(report, *path, path->call_site());
}

const Frame* UserLine(const Report& report, const Variant& variant) {
  const CallPath* path = FindPath(report, variant);
  return path == nullptr ? nullptr : FrameAt(report, *path, path->user());
}

std::string Place(const Frame* frame) {
  if (frame == nullptr) return "";
  const std::string& file = frame->file();
  const std::string name = file.substr(file.rfind('/') + 1);
  return frame->line() == 0 ? name : absl::StrCat(name, ":", frame->line());
}

std::string OwningLibrary(const Report& report, const Variant& variant) {
  const Frame* site = CallSite(report, variant);
  return site == nullptr || site->owner() == "user" ? "" : site->owner();
}

const std::string& ModuleClass(const Variant& variant) { return variant.module().class_name(); }

void AddBytes(Finding* finding, absl::string_view name, int64_t bytes) {
  Evidence* evidence = finding->add_evidence();
  evidence->set_name(std::string(name));
  evidence->set_text(FormatBytes(bytes));
  evidence->set_value(bytes);
  evidence->set_unit("bytes");
}

void AddCount(Finding* finding, absl::string_view name, int64_t count) {
  Evidence* evidence = finding->add_evidence();
  evidence->set_name(std::string(name));
  evidence->set_text(absl::StrCat(count));
  evidence->set_value(count);
  evidence->set_unit("count");
}

void AddText(Finding* finding, absl::string_view name, absl::string_view text) {
  Evidence* evidence = finding->add_evidence();
  evidence->set_name(std::string(name));
  evidence->set_text(std::string(text));
}

void AddAdvice(Finding* finding, absl::string_view text, absl::string_view code, Change change) {
  Advice* advice = finding->add_advice();
  advice->set_text(std::string(text));
  advice->set_code(std::string(code));
  advice->set_proof("unproven");
  advice->set_change(reference::NameOf(change));
}

void AddGates(const google::protobuf::RepeatedPtrField<Gate>& gates, std::set<std::string>* seen, Finding* finding) {
  for (const Gate& gate : gates) {
    std::string key = absl::StrCat(gate.backend(), "\n", gate.text());
    std::erase_if(key, [](unsigned char letter) { return absl::ascii_isdigit(letter); });
    if (seen->insert(std::move(key)).second) *finding->add_gates() = gate;
  }
}

std::string JoinWords(const std::vector<std::string>& words) {
  if (words.size() < 2) return words.empty() ? "" : words.front();
  return absl::StrCat(absl::StrJoin(words.begin(), words.end() - 1, ", "), " and ", words.back());
}

}  // namespace attntrace::rules
