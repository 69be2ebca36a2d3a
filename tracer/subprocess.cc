#include "tracer/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tracer/process_info.h"

namespace attntrace {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Reads both pipes until both are closed; false when the deadline passed first.
bool ReadAll(int out, int err, Captured& captured, uint64_t deadline_ns) {
  pollfd ends[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const uint64_t now = MonotonicNs();
    if (now >= deadline_ns) return false;
    if (poll(ends, 2, static_cast<int>((deadline_ns - now) / 1'000'000) + 1) < 0 && errno != EINTR) return false;
    for (pollfd& end : ends) {
      if (end.fd < 0 || end.revents == 0) continue;
      char buffer[4096];
      const ssize_t got = read(end.fd, buffer, sizeof buffer);
      if (got > 0) {
        (&end == ends ? captured.out : captured.err).append(buffer, static_cast<size_t>(got));
      } else {
        end.fd = -1;
      }
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<Captured> RunCaptured(const std::vector<std::string>& command, const std::vector<std::string>& environment,
                                     int timeout_s) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return absl::UnavailableError(absl::StrCat("pipe: ", std::strerror(errno)));
  if (pipe2(err, O_CLOEXEC) != 0) {
    close(out[0]), close(out[1]);
    return absl::UnavailableError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, command[0].c_str(), &actions, nullptr, Pointers(command).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]), close(err[1]);
  Captured captured;
  bool in_time = true;
  if (error == 0) {
    in_time = ReadAll(out[0], err[0], captured, MonotonicNs() + static_cast<uint64_t>(timeout_s) * 1'000'000'000);
    if (!in_time) kill(child, SIGKILL);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    captured.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  close(out[0]), close(err[0]);
  if (error != 0) return absl::NotFoundError(absl::StrCat(command[0], ": ", std::strerror(error)));
  if (!in_time) return absl::DeadlineExceededError(absl::StrCat(command[0], " did not end within ", timeout_s, " s"));
  return captured;
}

}  // namespace attntrace
