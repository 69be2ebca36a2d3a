#include "report/writers/places.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/owner.h"

namespace attntrace {
namespace {

constexpr size_t kMostPlaces = 8;

std::string WithLine(const std::string& file, const Frame& frame) {
  if (file.empty()) return frame.function();
  return frame.line() == 0 ? file : absl::StrCat(file, ":", frame.line());
}

// Owners that lead to the user's code (pytest, a launcher) say nothing about the call.
void DropBeforeUser(std::vector<Place>* places) {
  const auto user =
      std::find_if(places->begin(), places->end(), [](const Place& place) { return place.frame->owner() == kOwnerUser; });
  if (user != places->end()) places->erase(places->begin(), user);
}

}  // namespace

const CallPath* PathOf(const Report& report, const Variant& variant) {
  const uint32_t index = variant.call_path();
  if (index == 0 || index > static_cast<uint32_t>(report.call_paths_size())) return nullptr;
  return &report.call_paths(static_cast<int>(index) - 1);
}

const Frame* FrameAt(const Report& report, const CallPath& path, int position) {
  if (position < 0 || position >= path.frames_size()) return nullptr;
  const uint32_t index = path.frames(position);
  return index < static_cast<uint32_t>(report.frames_size()) ? &report.frames(static_cast<int>(index)) : nullptr;
}

int ModulePosition(const Report& report, const CallPath& path, const Module& module) {
  if (module.class_name().empty()) return -1;
  const std::string method = absl::StrCat(module.class_name(), ".");
  int same_file = -1;
  for (int i = 0; i < path.frames_size(); ++i) {
    const Frame* frame = FrameAt(report, path, i);
    if (frame == nullptr || frame->module() != module.class_module()) continue;
    if (absl::StartsWith(frame->function(), method)) return i;
    // Before Python 3.11 a code object does not know its class.
    if (same_file < 0 && frame->function() == "forward") same_file = i;
  }
  return same_file;
}

std::string Location(const Report& report, const Frame& frame) {
  return WithLine(ShortPath(frame.file(), frame.module(), frame.owner(), report.run().directory()), frame);
}

std::string BaseLocation(const Frame& frame) { return WithLine(frame.file().substr(frame.file().rfind('/') + 1), frame); }

std::vector<Place> PlacesOf(const Report& report, const Variant& variant) {
  const CallPath* path = PathOf(report, variant);
  if (path == nullptr) return {};
  const int module = ModulePosition(report, *path, variant.module());
  std::vector<Place> places;
  const Frame* outer = nullptr;  // of the frame before
  for (int i = path->frames_size() - 1; i >= 0; --i) {
    const Frame* frame = FrameAt(report, *path, i);
    // A module of PyTorch's own (nn.MultiheadAttention) is worth its line all the same.
    if (frame == nullptr || (IsPlumbing(frame->owner()) && i != module)) continue;
    const bool same_owner = outer != nullptr && outer->owner() == frame->owner();
    if (same_owner && !places.back().module) places.pop_back();
    places.push_back({frame, i == module});
    outer = frame;
  }
  DropBeforeUser(&places);
  if (places.size() > kMostPlaces) {  // both ends tell most
    places.erase(places.begin() + kMostPlaces / 2, places.end() - kMostPlaces / 2);
  }
  return places;
}

}  // namespace attntrace
