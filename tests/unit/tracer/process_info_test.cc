#include "tracer/process_info.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/catch.h"

namespace attntrace {
namespace {

TEST_CASE("a process is alive until it has ended, reaped or not") {
  CHECK(IsAlive(getpid(), StartTicks(getpid())));
  CHECK_FALSE(IsAlive(getpid(), StartTicks(getpid()) + 1));
  CHECK_FALSE(IsAlive(getpid(), 0));
  CHECK(StartTicks(0) == 0);
  CHECK(StartTicks(-1) == 0);

  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  const uint64_t ticks = StartTicks(child);
  CHECK(IsAlive(child, ticks));
  kill(child, SIGKILL);
  siginfo_t info;
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  CHECK_FALSE(IsAlive(child, ticks));  // a zombie
  waitpid(child, nullptr, 0);
  CHECK_FALSE(IsAlive(child, ticks));
}

}  // namespace
}  // namespace attntrace
