// Runs a helper program to its end and keeps what it printed. Not for the traced program: see launch.h.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attntrace {

struct Captured {
  int exit_code = -1;  // -1: ended by a signal
  std::string out;
  std::string err;
};

// `environment` is NAME=value. NotFound where the program is not there, DeadlineExceeded (and the program killed) after
// `timeout_s` seconds.
absl::StatusOr<Captured> RunCaptured(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                                     int timeout_s);

}  // namespace attntrace
