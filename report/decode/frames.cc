#include "report/decode/frames.h"

#include <algorithm>
#include <string>
#include <utility>

namespace attntrace {
namespace {

// Only objects of the user's own are worth a look-up: PyTorch's and the system's carry no line tables.
bool WorthALine(const std::string& owner) { return !IsPlumbing(owner); }

}  // namespace

FrameDecoder::FrameDecoder(const Definitions& definitions, const std::string& directory, Interner* interner,
                           Symboliser* symboliser)
    : definitions_(definitions), tree_(directory), interner_(interner), symboliser_(symboliser) {
  for (const auto& [id, def] : definitions.frames()) {
    const std::string file = definitions.String(def->file);
    if (def->kind == spool::FrameKind::kNative) {
      if (WorthALine(NativeOwner(file))) symboliser_->Announce(file, def->offset);
      continue;
    }
    const std::string module = definitions.String(def->module);
    if (module == "__main__" || module == "__mp_main__") tree_.AddScript(file);
  }
}

Frame FrameDecoder::Decode(const spool::FrameDef& def) {
  Frame frame;
  std::string file = definitions_.String(def.file);
  frame.set_function(definitions_.String(def.function));
  if (def.kind != spool::FrameKind::kNative) {
    frame.set_module(definitions_.String(def.module));
    frame.set_line(static_cast<uint32_t>(std::max(def.line, 0)));
    frame.set_owner(PythonOwner(file, frame.module(), tree_));
    frame.set_file(std::move(file));
    return frame;
  }
  frame.set_native(true);
  frame.set_owner(NativeOwner(file));
  const Symboliser::Line* line = WorthALine(frame.owner()) ? symboliser_->Lookup(file, def.offset) : nullptr;
  if (line != nullptr && !line->function.empty()) frame.set_function(line->function);
  if (line != nullptr && !line->file.empty()) {
    frame.set_file(line->file);
    frame.set_line(line->line);
  } else {
    frame.set_file(std::move(file));
  }
  return frame;
}

uint32_t FrameDecoder::Path(uint32_t id) {
  const auto known = paths_.find(id);
  if (known != paths_.end()) return known->second;
  const Definitions::Path* def = definitions_.PathOf(id);
  uint32_t index = 0;
  if (def != nullptr) {
    CallPath path;
    for (uint32_t frame_id : def->frames) {
      const spool::FrameDef* frame = definitions_.Frame(frame_id);
      if (frame == nullptr) {  // its record was dropped: the path goes on without it
        path.set_truncated(true);
        continue;
      }
      const auto [at, fresh] = frames_.try_emplace(frame_id, 0);
      if (fresh) at->second = interner_->Add(Decode(*frame));
      path.add_frames(at->second);
    }
    if (def->flags & spool::kPathTruncated) path.set_truncated(true);
    path.set_compiled(def->flags & spool::kPathCompiled);
    if (path.frames_size() > 0) index = interner_->Add(std::move(path));
  }
  paths_[id] = index;
  return index;
}

}  // namespace attntrace
