// Starts the traced program and waits for it as a shell would: standard streams untouched, signals forwarded, job control
// kept, its end told exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attntrace {

struct ChildEnd {
  int exec_errno = 0;  // not 0: it could not be executed, and nothing ran
  bool signaled = false;
  int code = 0;  // exit code, or the number of the signal
  uint64_t duration_ns = 0;
};

// Runs `command` with `environment` (NAME=value). The caller must have one thread. Unavailable where no process can be made.
absl::StatusOr<ChildEnd> RunChild(const std::vector<std::string>& command, const std::vector<std::string>& environment);

// Replaces this process by `command`; returns only where that fails, with errno.
int ExecInPlace(const std::vector<std::string>& command, const std::vector<std::string>& environment);

// 127 not found, 126 found but not executable, as shells have it, and the line to say.
int ExecFailureCode(int exec_errno);
std::string ExecFailureText(const std::string& program, int exec_errno);

// Ends this process by `signal`, so that a caller sees the very status it would have seen untraced; no second core file.
[[noreturn]] void DieBySignal(int signal);

}  // namespace attntrace
