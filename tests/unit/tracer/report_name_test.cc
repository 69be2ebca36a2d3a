#include "tracer/report_name.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/catch.h"
#include "tests/unit/report/temporary_folder.h"

namespace attntrace {
namespace {

TEST_CASE("a run is called after its script, its module or its program") {
  using Words = std::vector<std::string>;
  CHECK(ProgramTitle(Words{"python", "-u", "src/train.py", "other.py"}) == "train");
  CHECK(ProgramTitle(Words{"torchrun", "--nproc-per-node", "2", "train.py", "--x=y.py"}) == "train");
  CHECK(ProgramTitle(Words{"python3.11", "-m", "pkg.train", "--lr", "1"}) == "pkg.train");
  CHECK(ProgramTitle(Words{"env", "A=1", "/usr/bin/python", "-m", "pytest"}) == "pytest");
  CHECK(ProgramTitle(Words{"srun", "-m", "block", "./serve"}) == "srun");
  CHECK(ProgramTitle(Words{"/usr/bin/bash", "run.sh"}) == "bash");
  CHECK(ProgramTitle(Words{"./tool.py"}) == "tool");
  CHECK(ProgramTitle(Words{"python", "my script (1).py"}) == "my_script__1_");
  CHECK(ProgramTitle(Words{"python", "--config=a.py"}) == "python");
}

TEST_CASE("the standard name has pid and rank") {
  CHECK(StandardReportName({"python", "train.py"}, {.host = "h", .pid = 47, .rank = -1}) == "attntrace-train.47.attn");
  CHECK(StandardReportName({"python", "train.py"}, {.host = "h", .pid = 47, .rank = 3}) == "attntrace-train.47.rank3.attn");
}

TEST_CASE("patterns") {
  const NameFacts facts{.host = "node/7", .pid = 47, .rank = 3};
  CHECK(*ExpandPattern("out/%h-%p-%r-100%%.attn", facts) == "out/node_7-47-3-100%.attn");
  CHECK(*ExpandPattern("r%r", {.host = "", .pid = 1, .rank = -1}) == "r0");
  CHECK(ExpandPattern("x%q", facts).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(ExpandPattern("x%", facts).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a folder gets the standard name, a pattern its own") {
  const testing::TemporaryFolder folder;
  const NameFacts facts{.host = "h", .pid = 47, .rank = -1};
  CHECK(*ReportPath("", {"python", "a.py"}, facts) == "attntrace-a.47.attn");
  CHECK(*ReportPath(folder.path(), {"python", "a.py"}, facts) == folder.path() + "/attntrace-a.47.attn");
  CHECK(*ReportPath(folder.path() + "/", {"a"}, facts) == folder.path() + "/attntrace-a.47.attn");
  CHECK(*ReportPath(folder.path() + "/%p", {"a"}, facts) == folder.path() + "/47");
}

TEST_CASE("what exists is not overwritten unasked, and only plain files ever are") {
  const testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/x.attn";
  CHECK(CheckReportPath(path, false).ok());
  std::ofstream(path) << "x";
  CHECK(absl::IsAlreadyExists(CheckReportPath(path, false)));
  CHECK(CheckReportPath(path, true).ok());
  CHECK(absl::IsAlreadyExists(CheckReportPath("/dev/null", true)));
  CHECK(absl::IsUnavailable(CheckReportPath(folder.path() + "/none/x.attn", true)));
  CHECK(absl::IsUnavailable(CheckReportPath(folder.path() + "/" + std::string(300, 'x'), false)));
}

TEST_CASE("the spool folder stands beside the report") {
  CHECK(SpoolFolderFor("a/x.attn") == "a/x.attntrace.d");
  CHECK(SpoolFolderFor("a/x") == "a/x.attntrace.d");
}

TEST_CASE("the rank is the launcher's own") {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) unsetenv(name);
  CHECK(CurrentNameFacts().rank == -1);
  setenv("SLURM_PROCID", "5", 1);
  CHECK(CurrentNameFacts().rank == 5);
  setenv("RANK", "x", 1);
  CHECK(CurrentNameFacts().rank == 5);
  setenv("RANK", "2", 1);
  CHECK(CurrentNameFacts().rank == 2);
  unsetenv("RANK");
  unsetenv("SLURM_PROCID");
}

}  // namespace
}  // namespace attntrace
