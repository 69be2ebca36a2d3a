#include "report/decode/intern.h"

#include <utility>

#include "report/owner.h"

namespace attntrace {

uint32_t Interner::Add(const Frame& frame) {
  const auto [at, fresh] =
      frames_.try_emplace({frame.file(), frame.line(), frame.function(), frame.module(), frame.owner(), frame.native()},
                          static_cast<uint32_t>(report_->frames_size()));
  if (fresh) *report_->add_frames() = frame;
  return at->second;
}

uint32_t Interner::Add(CallPath path) {
  const auto [at, fresh] = paths_.try_emplace({{path.frames().begin(), path.frames().end()}, path.truncated(), path.compiled()},
                                              static_cast<uint32_t>(report_->call_paths_size()) + 1);
  if (!fresh) return at->second;
  path.set_call_site(-1);
  path.set_user(-1);
  for (int i = path.frames_size() - 1; i >= 0; --i) {  // from the outermost, so that the innermost is what stays
    const std::string& owner = report_->frames(static_cast<int>(path.frames(i))).owner();
    if (!IsPlumbing(owner)) path.set_call_site(i);
    if (owner == kOwnerUser) path.set_user(i);
  }
  *report_->add_call_paths() = std::move(path);
  return at->second;
}

}  // namespace attntrace
