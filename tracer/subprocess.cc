#include "tracer/subprocess.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "tracer/process_info.h"
#include "tracer/spawn.h"

namespace attntrace {
namespace {

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
  absl::StatusOr<Spawned> child = Spawn(command, environment, {.in = false, .out = true, .err = true});
  if (!child.ok()) return child.status();
  Captured captured;
  const bool in_time =
      ReadAll(child->out, child->err, captured, MonotonicNs() + static_cast<uint64_t>(timeout_s) * 1'000'000'000);
  if (!in_time) kill(child->pid, SIGKILL);
  const int status = CloseAndWait(&*child);
  captured.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (!in_time) return absl::DeadlineExceededError(absl::StrCat(command[0], " did not end within ", timeout_s, " s"));
  return captured;
}

}  // namespace attntrace
