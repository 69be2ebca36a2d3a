#include "tracer/spawn.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace attntrace {
namespace {

void CloseEnds(Spawned* child) {
  for (int* const end : {&child->in, &child->out, &child->err}) {
    if (*end >= 0) close(*end);
    *end = -1;
  }
}

}  // namespace

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

absl::StatusOr<Spawned> Spawn(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                              Piped piped) {
  Spawned child;
  int* const ours[] = {&child.in, &child.out, &child.err};
  const bool wanted[] = {piped.in, piped.out, piped.err};
  int theirs[] = {-1, -1, -1};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int error = 0;
  for (int stream = 0; stream < 3 && error == 0; ++stream) {
    if (!wanted[stream]) {
      posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0);
      continue;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
      error = errno;
      break;
    }
    const bool to_child = stream == STDIN_FILENO;
    *ours[stream] = ends[to_child ? 1 : 0];
    theirs[stream] = ends[to_child ? 0 : 1];
    posix_spawn_file_actions_adddup2(&actions, theirs[stream], stream);
  }
  const bool no_pipe = error != 0;
  if (!no_pipe) {
    error =
        posix_spawnp(&child.pid, command[0].c_str(), &actions, nullptr, Pointers(command).data(), Pointers(environment).data());
  }
  posix_spawn_file_actions_destroy(&actions);
  for (const int end : theirs) {
    if (end >= 0) close(end);
  }
  if (error == 0) return child;
  CloseEnds(&child);
  if (no_pipe) return absl::UnavailableError(absl::StrCat("pipe: ", std::strerror(error)));
  return absl::NotFoundError(absl::StrCat(command[0], ": ", std::strerror(error)));
}

int CloseAndWait(Spawned* child) {
  CloseEnds(child);
  int status = 0;
  while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR) {
  }
  child->pid = 0;
  return status;
}

}  // namespace attntrace
