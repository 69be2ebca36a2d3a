// Starts a helper program with pipes. Not for the traced program: see launch.h.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace attntrace {

// For execve and its kind; good as long as `strings` is.
std::vector<char*> Pointers(const std::vector<std::string>& strings);

// This side's ends, closed on exec; -1 where the stream is not piped but /dev/null.
struct Spawned {
  pid_t pid = 0;
  int in = -1, out = -1, err = -1;
};

struct Piped {
  bool in = false, out = false, err = false;
};

// `environment` is NAME=value; the program is looked for in PATH. NotFound where it cannot be started.
absl::StatusOr<Spawned> Spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                              Piped piped);

// Closes the ends that are open, and waits for the process to end. Its status as waitpid gives it.
int CloseAndWait(Spawned* child);

}  // namespace attntrace
