#include "tracer/reference_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

// A reader that died must not end the launcher: SIGPIPE is kept away for the length of one write.
bool Write(int to, const std::string& text) {
  sigset_t pipe, before;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = write(to, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  if (done < text.size()) {
    const timespec now{};
    sigtimedwait(&pipe, nullptr, &now);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return done == text.size();
}

}  // namespace

absl::Status ReferenceProcess::Start() {
  if (pid_ != 0) return absl::OkStatus();
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0) return absl::UnavailableError(std::strerror(errno));
  if (pipe2(out, O_CLOEXEC) != 0) {
    close(in[0]), close(in[1]);
    return absl::UnavailableError(std::strerror(errno));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  // What libraries print is not the summary's.
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error =
      posix_spawn(&pid_, command_[0].c_str(), &actions, nullptr, Pointers(command_).data(), Pointers(environment_).data());
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]), close(out[1]);
  if (error != 0) {
    close(in[1]), close(out[0]);
    pid_ = 0;
    return absl::NotFoundError(absl::StrCat(command_[0], ": ", std::strerror(error)));
  }
  to_ = in[1], from_ = out[0];
  unread_.clear();
  return absl::OkStatus();
}

std::string ReferenceProcess::HowItEnded() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  close(to_), close(from_);
  pid_ = 0, to_ = from_ = -1;
  if (WIFSIGNALED(status)) return absl::StrCat("it died of signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return absl::StrCat("it ended with exit code ", WEXITSTATUS(status));
}

void ReferenceProcess::Stop() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  HowItEnded();
}

absl::StatusOr<reference::Response> ReferenceProcess::Ask(const reference::Request& request, uint64_t deadline_ns) {
  if (absl::Status status = Start(); !status.ok()) return status;
  if (!Write(to_, Encode(request) + "\n")) return absl::AbortedError(HowItEnded());
  for (;;) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      const std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      reference::Response response;
      std::string why;
      if (!Decode(line, &response, &why)) return absl::InternalError(why);
      if (response.id == request.id) return response;
      continue;
    }
    const uint64_t now = MonotonicNs();
    if (now >= deadline_ns) {
      Stop();
      return absl::DeadlineExceededError("no answer in time");
    }
    pollfd end{from_, POLLIN, 0};
    const uint64_t wait_ms = std::min<uint64_t>((deadline_ns - now) / 1'000'000 + 1, 1000);
    if (poll(&end, 1, static_cast<int>(wait_ms)) <= 0) continue;
    char buffer[4096];
    const ssize_t got = read(from_, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::AbortedError(HowItEnded());
    unread_.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace attntrace
