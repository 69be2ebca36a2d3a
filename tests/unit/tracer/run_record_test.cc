#include "tracer/run_record.h"

#include <unistd.h>

#include <fstream>

#include "tests/unit/catch.h"
#include "tests/unit/report/temporary_folder.h"
#include "tracer/process_info.h"
#include "tracer/spool/names.h"

namespace attntrace {
namespace {

RunRecord Example() {
  RunRecord record;
  record.command = {"python", "tr\xc3\xa4in.py", "not utf-8: \xff\x01", ""};
  record.host = "node7";
  record.directory = "/data/\xfe";
  record.start_unix_ns = 1'790'000'000'000'000'001;
  record.duration_ns = 18'000'000'000'000'000'000u;
  record.launcher_pid = 47;
  record.launcher_start_ticks = 12345;
  record.report = "/data/x.attn";
  record.kept = true;
  record.ended = "signal";
  record.exit_code = 0;
  record.signal = 9;
  return record;
}

TEST_CASE("a run record comes back as it was, bytes that are not UTF-8 too") {
  const testing::TemporaryFolder folder;
  const RunRecord record = Example();
  REQUIRE(WriteRunRecord(folder.path(), record).ok());
  const absl::StatusOr<RunRecord> back = ReadRunRecord(folder.path());
  REQUIRE(back.ok());
  CHECK(back->command == record.command);
  CHECK(back->host == record.host);
  CHECK(back->directory == record.directory);
  CHECK(back->start_unix_ns == record.start_unix_ns);
  CHECK(back->duration_ns == record.duration_ns);
  CHECK(back->launcher_pid == record.launcher_pid);
  CHECK(back->launcher_start_ticks == record.launcher_start_ticks);
  CHECK(back->report == record.report);
  CHECK(back->kept);
  CHECK(back->ended == "signal");
  CHECK(back->signal == 9);
  CHECK(FactsOf(*back).command == record.command);
  CHECK(FactsOf(*back).signal == 9);
}

TEST_CASE("damaged and missing records are errors that name the file") {
  const testing::TemporaryFolder folder;
  CHECK(absl::IsNotFound(ReadRunRecord(folder.path()).status()));
  const std::string whole = RunRecordToJson(Example());
  for (const std::string& text : {std::string(), whole.substr(0, whole.size() / 2), std::string("{}"), std::string("[1]")}) {
    INFO(text);
    std::ofstream(folder.path() + "/" + names::kRunFile) << text;
    const absl::Status status = ReadRunRecord(folder.path()).status();
    CHECK(absl::IsDataLoss(status));
    CHECK(std::string(status.message()).find(names::kRunFile) != std::string::npos);
  }
}

TEST_CASE("a launcher runs when its pid and its start agree, or when it is elsewhere") {
  RunRecord record = Example();
  record.host = HostName();
  record.launcher_pid = getpid();
  record.launcher_start_ticks = StartTicks(getpid());
  CHECK(LauncherRuns(record));
  record.launcher_start_ticks += 1;
  CHECK_FALSE(LauncherRuns(record));
  record.host += "-other";
  CHECK(LauncherRuns(record));
}

}  // namespace
}  // namespace attntrace
