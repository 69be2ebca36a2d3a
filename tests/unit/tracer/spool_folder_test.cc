#include "tracer/spool_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/catch.h"
#include "tests/unit/report/temporary_folder.h"
#include "tracer/process_info.h"
#include "tracer/run_record.h"

namespace attntrace {
namespace {

namespace fs = std::filesystem;

std::string Make(const std::string& path) {
  const absl::StatusOr<std::string> made = CreateSpoolFolder(path);
  REQUIRE(made.ok());
  return *made;
}

TEST_CASE("a spool folder is private, absolute and never one that is left") {
  const testing::TemporaryFolder root;
  const std::string path = root.path() + "/x.attntrace.d";
  CHECK(Make(path) == path);
  struct stat found;
  REQUIRE(stat(path.c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0700);
  CHECK(Make(path) == root.path() + "/x.2.attntrace.d");
  CHECK(Make(path) == root.path() + "/x.3.attntrace.d");
}

TEST_CASE("where the report cannot be, the spools go below TMPDIR") {
  const testing::TemporaryFolder root;
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before == nullptr ? "" : before;
  setenv("TMPDIR", root.path().c_str(), 1);
  CHECK(Make(root.path() + "/none/x.attntrace.d") == root.path() + "/x.attntrace.d");
  setenv("TMPDIR", (root.path() + "/none").c_str(), 1);
  CHECK(absl::IsUnavailable(CreateSpoolFolder(root.path() + "/none/x.attntrace.d").status()));
  before == nullptr ? unsetenv("TMPDIR") : setenv("TMPDIR", saved.c_str(), 1);
}

TEST_CASE("spools and reasons are found by their names") {
  const testing::TemporaryFolder root;
  for (const char* name : {"20-300-1.spool", "20-300-0.spool", "7-100-0.spool", "notes.txt", "bad.spool", "run.json"}) {
    std::ofstream(root.path() + "/" + name) << "x";
  }
  std::ofstream(root.path() + "/31.untraced") << "no agent for PyTorch 2.5.0\n";
  const absl::StatusOr<SpoolFolder> folder = ReadSpoolFolder(root.path());
  REQUIRE(folder.ok());
  REQUIRE(folder->spools.size() == 4);  // the decoder says what is wrong with bad.spool
  CHECK(fs::path(folder->spools[0]).filename() == "20-300-0.spool");
  REQUIRE(folder->processes.size() == 2);
  CHECK(folder->processes[0].pid == 7);
  CHECK(folder->processes[0].start_ticks == 100);
  CHECK(folder->processes[1].pid == 20);
  REQUIRE(folder->untraced.size() == 1);
  CHECK(folder->untraced[0].pid == 31);
  CHECK(folder->untraced[0].reason == "no agent for PyTorch 2.5.0");
  CHECK(absl::IsNotFound(ReadSpoolFolder(root.path() + "/none").status()));
}

TEST_CASE("running processes are told from ended ones") {
  const TracedProcess here{getpid(), StartTicks(getpid())};
  const TracedProcess gone{getpid(), StartTicks(getpid()) + 1};
  CHECK(StillRunning({here, gone}, 0) == std::vector<pid_t>{getpid()});
  CHECK(StillRunning({gone}, 1000).empty());
}

TEST_CASE("only our files are removed") {
  const testing::TemporaryFolder root;
  const std::string path = Make(root.path() + "/x.attntrace.d");
  for (const char* name : {"/1-2-0.spool", "/1.untraced", "/run.json"}) std::ofstream(path + name) << "x";
  RemoveSpoolFolder(path);
  CHECK_FALSE(fs::exists(path));

  const std::string mixed = Make(root.path() + "/y.attntrace.d");
  for (const char* name : {"/1-2-0.spool", "/thesis.txt"}) std::ofstream(mixed + name) << "x";
  RemoveSpoolFolder(mixed);
  CHECK(fs::exists(mixed + "/thesis.txt"));
  CHECK_FALSE(fs::exists(mixed + "/1-2-0.spool"));
}

TEST_CASE("what a dead launcher left is found, what one keeps or still writes is not") {
  const testing::TemporaryFolder root;
  RunRecord record;
  record.host = HostName();
  record.launcher_pid = getpid();
  record.launcher_start_ticks = StartTicks(getpid());
  const auto leave = [&](const std::string& name) {
    const std::string path = Make(root.path() + "/" + name + ".attntrace.d");
    REQUIRE(WriteRunRecord(path, record).ok());
    return path;
  };
  leave("running");
  record.launcher_start_ticks += 1;
  const std::string dead = leave("dead");
  record.kept = true;
  leave("kept");
  Make(root.path() + "/norecord.attntrace.d");
  CHECK(FindLeftovers(root.path()) == std::vector<std::string>{dead});
  CHECK(FindLeftovers(root.path() + "/none").empty());
}

}  // namespace
}  // namespace attntrace
