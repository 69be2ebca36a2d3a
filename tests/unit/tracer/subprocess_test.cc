#include "tracer/subprocess.h"

#include "tests/unit/catch.h"
#include "tracer/process_info.h"

namespace attntrace {
namespace {

const std::vector<std::string> kEnvironment = {"PATH=/usr/bin:/bin", "WORD=given"};

TEST_CASE("a helper's output, errors and exit code are kept apart") {
  const absl::StatusOr<Captured> got = RunCaptured({"sh", "-c", "echo $WORD; echo oops >&2; exit 7"}, kEnvironment, 60);
  REQUIRE(got.ok());
  CHECK(got->out == "given\n");
  CHECK(got->err == "oops\n");
  CHECK(got->exit_code == 7);
}

TEST_CASE("much output on both streams does not block") {
  const absl::StatusOr<Captured> got =
      RunCaptured({"sh", "-c", "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero"}, kEnvironment, 60);
  REQUIRE(got.ok());
  CHECK(got->out.size() == 300000);
  CHECK(got->err.size() == 300000);
}

TEST_CASE("a signal, a missing program and a helper that hangs are told") {
  CHECK(RunCaptured({"sh", "-c", "kill -9 $$"}, kEnvironment, 60)->exit_code == -1);
  CHECK(absl::IsNotFound(RunCaptured({"/no/such/program"}, kEnvironment, 60).status()));
  const uint64_t start = MonotonicNs();
  CHECK(absl::IsDeadlineExceeded(RunCaptured({"sleep", "60"}, kEnvironment, 1).status()));
  CHECK(MonotonicNs() - start < 30'000'000'000);
}

}  // namespace
}  // namespace attntrace
