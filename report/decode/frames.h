// Frames and call paths of one process, turned into the report's. A frame's owner depends on where the process's script lies,
// so this is made anew for every process.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "report/decode/definitions.h"
#include "report/decode/intern.h"
#include "report/decode/symbolise.h"
#include "report/owner.h"

namespace attntrace {

class FrameDecoder {
 public:
  FrameDecoder(const Definitions& definitions, const std::string& directory, Interner* interner, Symboliser* symboliser);

  // Index into Report.call_paths plus 1; 0 for an id that nothing defines.
  uint32_t Path(uint32_t id);

 private:
  Frame Decode(const spool::FrameDef& def);

  const Definitions& definitions_;
  UserTree tree_;
  Interner* interner_;
  Symboliser* symboliser_;
  absl::flat_hash_map<uint32_t, uint32_t> frames_, paths_;
};

}  // namespace attntrace
