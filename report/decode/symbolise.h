// Source lines of native frames, by addr2line of binutils where it is installed. It runs as a process of its own, once an
// object, with a time limit: a debug file of gigabytes must not hold up a summary.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace attntrace {

class Symboliser {
 public:
  struct Line {
    std::string function;  // demangled, empty unknown
    std::string file;      // empty unknown
    uint32_t line = 0;
  };

  // Announces return addresses, as offsets in the object; Lookup answers for what was announced. Objects of PyTorch and of the
  // system are best left out: they carry no lines, and are large.
  void Announce(const std::string& object, uint64_t offset);
  // Null where nothing is known.
  const Line* Lookup(const std::string& object, uint64_t offset);

 private:
  void Resolve(const std::string& object);

  std::map<std::string, std::vector<uint64_t>> waiting_;
  absl::flat_hash_map<std::string, absl::flat_hash_map<uint64_t, Line>> known_;
  uint64_t spent_ns_ = 0;
};

}  // namespace attntrace
