// What only the launcher knows about a run, handed to the decoder. `attntrace recover` leaves what it cannot know at its
// default.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attntrace {

struct UntracedProcess {  // a process that mapped libtorch and has no agent
  int pid;
  std::string reason;  // one line
};

struct RunFacts {
  std::vector<std::string> command;
  std::string host, directory;
  uint64_t start_unix_ns = 0, duration_ns = 0;
  std::string ended = "unknown";  // Run.ended of report.proto
  int exit_code = 0, signal = 0;
  std::vector<UntracedProcess> untraced;
};

}  // namespace attntrace
