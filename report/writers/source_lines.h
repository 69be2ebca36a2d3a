// A line of a source file, for showing it beside its number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace attntrace {

class SourceLines {
 public:
  // Files changed after this instant (ns since 1970) are not the ones that ran: their lines are not shown. 0: any time.
  explicit SourceLines(uint64_t newest_unix_ns) : newest_unix_ns_(newest_unix_ns) {}

  // Without the blanks around it; empty where the file cannot be read, is no regular file, is large, or is newer.
  std::string Line(const std::string& file, uint32_t line);

 private:
  std::vector<std::string> Load(const std::string& file) const;

  uint64_t newest_unix_ns_;
  absl::flat_hash_map<std::string, std::vector<std::string>> files_;
};

}  // namespace attntrace
