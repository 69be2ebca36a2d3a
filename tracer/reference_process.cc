#include "tracer/reference_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tracer/process_info.h"

namespace attntrace {
namespace {

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
  if (child_.pid != 0) return absl::OkStatus();
  // What libraries print on standard error is not the summary's.
  absl::StatusOr<Spawned> child = Spawn(command_, environment_, {.in = true, .out = true, .err = false});
  if (!child.ok()) return child.status();
  child_ = *child;
  unread_.clear();
  return absl::OkStatus();
}

std::string ReferenceProcess::HowItEnded() {
  const int status = CloseAndWait(&child_);
  if (WIFSIGNALED(status)) return absl::StrCat("it died of signal ", WTERMSIG(status), " (", strsignal(WTERMSIG(status)), ")");
  return absl::StrCat("it ended with exit code ", WEXITSTATUS(status));
}

void ReferenceProcess::Stop() {
  if (child_.pid == 0) return;
  kill(child_.pid, SIGKILL);
  HowItEnded();
}

absl::StatusOr<reference::Response> ReferenceProcess::Ask(const reference::Request& request, uint64_t deadline_ns) {
  if (absl::Status status = Start(); !status.ok()) return status;
  if (!Write(child_.in, Encode(request) + "\n")) return absl::AbortedError(HowItEnded());
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
    pollfd end{child_.out, POLLIN, 0};
    const uint64_t wait_ms = std::min<uint64_t>((deadline_ns - now) / 1'000'000 + 1, 1000);
    if (poll(&end, 1, static_cast<int>(wait_ms)) <= 0) continue;
    char buffer[4096];
    const ssize_t got = read(child_.out, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::AbortedError(HowItEnded());
    unread_.append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace attntrace
