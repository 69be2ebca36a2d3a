// One reference process: started on first use, asked line by line, killed when it keeps silent too long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/protocol.h"
#include "tracer/spawn.h"

namespace attntrace {

class ReferenceProcess {
 public:
  // `environment` is NAME=value.
  ReferenceProcess(std::vector<std::string> command, std::vector<std::string> environment)
      : command_(std::move(command)), environment_(std::move(environment)) {}
  ~ReferenceProcess() { Stop(); }
  ReferenceProcess(const ReferenceProcess&) = delete;
  ReferenceProcess& operator=(const ReferenceProcess&) = delete;

  // DeadlineExceeded, and the process is gone, when `deadline_ns` (MonotonicNs) passes without an answer. Aborted when it died,
  // with how. Either way the next call starts a new one.
  absl::StatusOr<reference::Response> Ask(const reference::Request& request, uint64_t deadline_ns);

 private:
  absl::Status Start();
  void Stop();
  std::string HowItEnded();

  const std::vector<std::string> command_, environment_;
  Spawned child_;
  std::string unread_;
};

}  // namespace attntrace
