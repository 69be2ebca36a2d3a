#include "tracer/launch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tracer/process_info.h"
#include "tracer/spawn.h"

namespace attntrace {
namespace {

// Signals that end, stop or inform a program from outside. Blocked in the launcher and taken one by one with sigwaitinfo, so
// that no handler of ours ever runs and none can kill the launcher before it has written the report.
constexpr int kForwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP};

// What the child gets back as it was before us.
struct SignalState {
  sigset_t mask;
  struct sigaction child, pipe;
};

SignalState TakeSignals() {
  SignalState before;
  sigset_t blocked;
  sigemptyset(&blocked);
  for (int signal : kForwarded) sigaddset(&blocked, signal);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, &before.mask);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &before.child);  // a parent that ignores it would keep us from waiting
  standard.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &standard, &before.pipe);  // a reader of our summary that went away must not cost the exit status
  return before;
}

void GiveSignalsBack(const SignalState& before) {
  sigaction(SIGCHLD, &before.child, nullptr);
  sigaction(SIGPIPE, &before.pipe, nullptr);
  sigprocmask(SIG_SETMASK, &before.mask, nullptr);
}

// The terminal's own signals reach the child by themselves as long as it is in our process group. One sent by a process is
// passed on: whether that process meant the whole group cannot be told, and one signal too many is better than one too few.
bool MustForward(const siginfo_t& info, pid_t child) {
  if (info.si_code == SI_KERNEL) return getpgid(child) != getpgrp();
  return info.si_pid != child;
}

// Waits until `child` has ended. Orphans fall to us only where we are process 1 of a container, and are reaped then. We do not
// ask for them: programs tell by their parent's id, 1, that they were orphaned.
ChildEnd WaitFor(pid_t child) {
  sigset_t waited;
  sigemptyset(&waited);
  for (int signal : kForwarded) sigaddset(&waited, signal);
  sigaddset(&waited, SIGCHLD);
  while (true) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&waited, &info);
    if (signal > 0 && signal != SIGCHLD) {
      if (MustForward(info, child)) kill(child, signal);
      continue;
    }
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0;) {
      if (pid != child) continue;
      if (WIFSTOPPED(status)) {
        // A stop of job control: stop with it, so that the shell sees the job stopped, and continue it when we are. A SIGSTOP
        // is meant for that process alone, and so will be its SIGCONT.
        if (WSTOPSIG(status) == SIGSTOP) continue;
        raise(SIGSTOP);
        kill(child, SIGCONT);
        continue;
      }
      return {.signaled = WIFSIGNALED(status), .code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)};
    }
  }
}

}  // namespace

int ExecInPlace(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  execvpe(command[0].c_str(), Pointers(command).data(), Pointers(environment).data());
  return errno;
}

absl::StatusOr<ChildEnd> RunChild(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  int failure[2];  // closed by a successful exec, else it carries errno
  if (pipe2(failure, O_CLOEXEC) != 0) return absl::UnavailableError(absl::StrCat("pipe: ", std::strerror(errno)));
  std::fflush(nullptr);
  const SignalState before = TakeSignals();
  const uint64_t start = MonotonicNs();
  const pid_t child = fork();
  if (child < 0) {
    const int error = errno;
    GiveSignalsBack(before);
    close(failure[0]), close(failure[1]);
    return absl::UnavailableError(absl::StrCat("fork: ", std::strerror(error)));
  }
  if (child == 0) {
    GiveSignalsBack(before);
    const int error = ExecInPlace(command, environment);
    [[maybe_unused]] const ssize_t written = write(failure[1], &error, sizeof error);
    _exit(127);
  }
  close(failure[1]);
  int exec_errno = 0;
  if (read(failure[0], &exec_errno, sizeof exec_errno) != sizeof exec_errno) exec_errno = 0;
  close(failure[0]);
  ChildEnd end = WaitFor(child);
  end.exec_errno = exec_errno;
  end.duration_ns = MonotonicNs() - start;
  return end;
}

int ExecFailureCode(int exec_errno) { return exec_errno == ENOENT || exec_errno == ENOTDIR ? 127 : 126; }

std::string ExecFailureText(const std::string& program, int exec_errno) {
  if (exec_errno == ENOENT && program.find('/') == std::string::npos) {
    return absl::StrCat(program, ": command not found");
  }
  if (exec_errno == ENOENT && access(program.c_str(), F_OK) == 0) {
    return absl::StrCat(program, ": the interpreter that its first line names is not there");
  }
  return absl::StrCat(program, ": ", std::strerror(exec_errno), exec_errno == EACCES ? "; is it executable?" : "");
}

void DieBySignal(int signal) {
  std::fflush(nullptr);
  // The child's core is the one of interest. A core pipe ignores the limit but heeds the dumpable flag.
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  prctl(PR_SET_DUMPABLE, 0);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  sigset_t open;
  sigemptyset(&open);
  sigaddset(&open, signal);
  kill(getpid(), signal);
  sigprocmask(SIG_UNBLOCK, &open, nullptr);
  _exit(128 + signal);  // as process 1 of a container no signal kills us
}

}  // namespace attntrace
