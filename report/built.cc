#include "report/built.h"

#include <algorithm>

namespace attntrace {
namespace {

const Frame* LineOf(const Report& report, uint32_t path_index) {
  if (path_index == 0 || path_index > static_cast<uint32_t>(report.call_paths_size())) return nullptr;
  const CallPath& path = report.call_paths(static_cast<int>(path_index) - 1);
  const int position = path.user() >= 0 ? path.user() : path.call_site();
  if (position < 0 || position >= path.frames_size()) return nullptr;
  const uint32_t frame = path.frames(position);
  return frame < static_cast<uint32_t>(report.frames_size()) ? &report.frames(static_cast<int>(frame)) : nullptr;
}

template <typename Items, typename Ids>
void Collect(const Report& report, const Items& items, const Ids& ids, std::vector<const Frame*>* frames) {
  for (const uint32_t id : ids) {
    const auto item = std::find_if(items.begin(), items.end(), [&](const auto& one) { return one.id() == id; });
    const Frame* const line = item == items.end() ? nullptr : LineOf(report, item->module().built_at());
    const auto same = [&](const Frame* one) { return one->file() == line->file() && one->line() == line->line(); };
    if (line != nullptr && std::none_of(frames->begin(), frames->end(), same)) frames->push_back(line);
  }
}

}  // namespace

std::vector<const Frame*> BuiltFrames(const Report& report, const Finding& finding) {
  std::vector<const Frame*> frames;
  Collect(report, report.variants(), finding.variants(), &frames);
  Collect(report, report.incidents(), finding.incidents(), &frames);
  return frames;
}

}  // namespace attntrace
