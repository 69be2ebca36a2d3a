// Frames and call paths are stored once in a report, however many processes and variants share them.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "report/report.pb.h"

namespace attntrace {

class Interner {
 public:
  explicit Interner(Report* report) : report_(report) {}

  // Index into Report.frames.
  uint32_t Add(const Frame& frame);
  // Index into Report.call_paths plus 1, as Variant.call_path wants it. Sets call_site and user itself.
  uint32_t Add(CallPath path);

 private:
  using FrameKey = std::tuple<std::string, uint32_t, std::string, std::string, std::string, bool>;
  using PathKey = std::tuple<std::vector<uint32_t>, bool, bool>;

  Report* report_;
  absl::flat_hash_map<FrameKey, uint32_t> frames_;
  absl::flat_hash_map<PathKey, uint32_t> paths_;
};

}  // namespace attntrace
