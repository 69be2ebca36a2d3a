#include "report/bound_fold.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace attntrace {
namespace {

constexpr char kNoPlace[] = "the report was full: calls of further call paths are counted together";

// What variants have in common that differ in shapes only.
std::string KindKey(const Variant& variant) {
  Variant kind = variant;
  kind.clear_id();
  kind.clear_count();
  kind.clear_peak_bytes();
  kind.clear_score_bytes();
  kind.clear_kept_bytes();
  kind.clear_allocated_bytes();
  kind.clear_host_ns();
  kind.clear_first_ns();
  kind.clear_last_ns();
  kind.clear_min_seq_kv();
  kind.clear_max_seq_kv();
  kind.clear_mask_bytes();
  kind.clear_mask_content();
  kind.clear_shapes_folded();
  kind.clear_layers();
  kind.clear_gates();
  kind.clear_thread();
  kind.clear_kernels();
  kind.clear_kernel_launches();
  kind.clear_kernel_calls();
  kind.clear_replayed_calls();
  kind.clear_replayed_kernels();
  kind.clear_device_ns();
  kind.clear_timed_launches();
  kind.clear_facts();  // a map has no order of its own
  for (Tensor& tensor : *kind.mutable_tensors()) {
    tensor.clear_sizes();
    tensor.clear_strides();
  }
  return kind.SerializeAsString();
}

std::string CommonContent(const std::string& a, const std::string& b) {
  if (a == b || b == "unread") return a;
  return a == "unread" ? b : "other";
}

void Merge(const Variant& from, Variant* into) {
  if (from.peak_bytes() > into->peak_bytes()) *into->mutable_tensors() = from.tensors();  // the shapes that cost most are shown
  into->set_count(into->count() + from.count());
  into->set_peak_bytes(std::max(into->peak_bytes(), from.peak_bytes()));
  into->set_score_bytes(std::max(into->score_bytes(), from.score_bytes()));
  if (from.last_ns() > into->last_ns()) into->set_kept_bytes(from.kept_bytes());
  into->set_allocated_bytes(into->allocated_bytes() + from.allocated_bytes());
  into->set_host_ns(into->host_ns() + from.host_ns());
  into->set_first_ns(std::min(into->first_ns(), from.first_ns()));
  into->set_last_ns(std::max(into->last_ns(), from.last_ns()));
  into->set_min_seq_kv(std::min(into->min_seq_kv(), from.min_seq_kv()));
  into->set_max_seq_kv(std::max(into->max_seq_kv(), from.max_seq_kv()));
  into->set_mask_bytes(std::max(into->mask_bytes(), from.mask_bytes()));
  into->set_mask_content(CommonContent(into->mask_content(), from.mask_content()));
  into->set_kernel_launches(into->kernel_launches() + from.kernel_launches());
  into->set_kernel_calls(into->kernel_calls() + from.kernel_calls());
  into->set_replayed_calls(into->replayed_calls() + from.replayed_calls());
  into->set_replayed_kernels(into->replayed_kernels() + from.replayed_kernels());
  into->set_device_ns(into->device_ns() + from.device_ns());
  into->set_timed_launches(into->timed_launches() + from.timed_launches());
  if (into->kernels().empty()) *into->mutable_kernels() = from.kernels();
  std::set<int32_t> layers(into->layers().begin(), into->layers().end());
  layers.insert(from.layers().begin(), from.layers().end());
  into->mutable_layers()->Assign(layers.begin(), layers.end());
}

// Everything that holds an index into call_paths plus one; 0 is none.
template <typename Change>
void EachPathOf(Report* report, Change change) {
  const auto change_module = [&](Module* module) { module->set_built_at(change(module->built_at())); };
  for (Variant& variant : *report->mutable_variants()) {
    variant.set_call_path(change(variant.call_path()));
    if (variant.has_module()) change_module(variant.mutable_module());
  }
  for (Incident& incident : *report->mutable_incidents()) {
    if (incident.has_module()) change_module(incident.mutable_module());
    incident.set_call_path(change(incident.call_path()));
    incident.set_created_at(change(incident.created_at()));
  }
}

// The frames that stay of a path, as indices into its list.
std::vector<int> Kept(const CallPath& path, int depth) {
  std::set<int> kept;
  for (int i = 0; i < std::min(path.frames_size(), depth); ++i) kept.insert(i);
  if (path.call_site() >= 0) kept.insert(path.call_site());
  if (path.user() >= 0) kept.insert(path.user());
  return {kept.begin(), kept.end()};
}

CallPath Cut(const CallPath& path, int depth) {
  const std::vector<int> kept = Kept(path, depth);
  CallPath cut = path;
  cut.clear_frames();
  for (size_t i = 0; i < kept.size(); ++i) {
    cut.add_frames(path.frames(kept[i]));
    if (kept[i] == path.call_site()) cut.set_call_site(static_cast<int>(i));
    if (kept[i] == path.user()) cut.set_user(static_cast<int>(i));
  }
  cut.set_truncated(path.truncated() || cut.frames_size() < path.frames_size());
  return cut;
}

}  // namespace

void FoldVariants(int shapes, const std::function<bool(const Variant&)>& placed, Report* report) {
  google::protobuf::RepeatedPtrField<Variant> kept;
  std::vector<uint32_t> now(static_cast<size_t>(report->variants_size()) + 1);  // by id: the id it goes on under
  absl::flat_hash_map<std::string, int> counts;
  absl::flat_hash_map<std::string, int> folded;           // index into kept
  for (Variant& variant : *report->mutable_variants()) {  // a forward stands before its backward
    const uint32_t before = variant.id();
    if (variant.forward() != 0) variant.set_forward(now[variant.forward()]);
    // The backward of one that was counted with others has no shape of its own either.
    const bool of_folded = variant.forward() != 0 && kept[static_cast<int>(variant.forward()) - 1].shapes_folded();
    const bool has_place = variant.call_path() == 0 || placed(variant);
    if (!has_place) {
      variant.set_call_path(0);
      variant.set_no_call_path(kNoPlace);
      variant.clear_module();
      variant.clear_facts();
    }
    std::string key = KindKey(variant);
    const bool folds = variant.shapes_folded() || of_folded || !has_place || counts[key] >= shapes;
    if (!folds) ++counts[key];
    if (const auto at = folded.find(key); folds && at != folded.end()) {
      now[before] = static_cast<uint32_t>(at->second) + 1;
      Merge(variant, &kept[at->second]);
      continue;
    }
    if (folds) {
      folded.emplace(std::move(key), kept.size());
      variant.set_shapes_folded(true);
    }
    now[before] = static_cast<uint32_t>(kept.size()) + 1;
    variant.set_id(now[before]);
    *kept.Add() = std::move(variant);
  }
  report->mutable_variants()->Swap(&kept);
  for (RecentCall& call : *report->mutable_recent_calls()) call.set_variant(now[call.variant()]);
}

void CutPaths(int depth, Report* report) {
  google::protobuf::RepeatedPtrField<CallPath> paths;
  google::protobuf::RepeatedPtrField<Frame> frames;
  std::vector<int> frame_now(static_cast<size_t>(report->frames_size()), -1);
  std::vector<uint32_t> path_now(static_cast<size_t>(report->call_paths_size()) + 1);
  std::map<std::tuple<std::vector<uint32_t>, bool, bool>, uint32_t> known;
  EachPathOf(report, [&](uint32_t path) {
    if (path == 0 || path_now[path] != 0) return path_now[path];
    CallPath cut = Cut(report->call_paths(static_cast<int>(path) - 1), depth);
    for (uint32_t& frame : *cut.mutable_frames()) {
      if (frame_now[frame] < 0) {
        frame_now[frame] = frames.size();
        *frames.Add() = report->frames(static_cast<int>(frame));
      }
      frame = static_cast<uint32_t>(frame_now[frame]);
    }
    const auto [at, fresh] = known.try_emplace({{cut.frames().begin(), cut.frames().end()}, cut.truncated(), cut.compiled()},
                                               static_cast<uint32_t>(paths.size()) + 1);
    if (fresh) *paths.Add() = std::move(cut);
    return path_now[path] = at->second;
  });
  report->mutable_call_paths()->Swap(&paths);
  report->mutable_frames()->Swap(&frames);
}

}  // namespace attntrace
