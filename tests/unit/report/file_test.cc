#include "report/file.h"

#include <fcntl.h>
#include <google/protobuf/util/message_differencer.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "tests/unit/catch.h"
#include "tests/unit/report/spool_builder.h"

namespace attntrace {
namespace {

using testing::TemporaryFolder;

Report Sample() {
  Report report;
  report.set_format_version(1);
  report.set_producer("attntrace test");
  report.mutable_run()->set_directory("/home/ada");
  for (uint32_t i = 1; i <= 50; ++i) report.add_variants()->set_id(i);
  return report;
}

std::string Bytes(const std::string& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return all.str();
}

void Put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

size_t FilesIn(const TemporaryFolder& folder) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++count;
  return count;
}

TEST_CASE("a report comes back as it was written, and nothing lies beside it") {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.attn";
  REQUIRE(WriteReportFile(Sample(), path, false).ok());
  const auto back = ReadReportFile(path);
  REQUIRE(back.ok());
  CHECK(google::protobuf::util::MessageDifferencer::Equals(*back, Sample()));
  CHECK(FilesIn(folder) == 1);
  // Readable by whom the user's mask lets read it, not by the temporary file's rules.
  struct stat facts;
  REQUIRE(stat(path.c_str(), &facts) == 0);
  const mode_t mask = umask(0);
  umask(mask);
  CHECK((facts.st_mode & 0777) == (0666 & ~mask));
}

TEST_CASE("nothing is overwritten without force") {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.attn";
  Put(path, "precious");
  const absl::Status status = WriteReportFile(Sample(), path, false);
  CHECK(absl::IsAlreadyExists(status));
  CHECK(absl::StrContains(status.message(), "-f"));
  CHECK(Bytes(path) == "precious");
  CHECK(FilesIn(folder) == 1);
  CHECK(WriteReportFile(Sample(), path, true).ok());
  CHECK(ReadReportFile(path).ok());
}

TEST_CASE("a full disk leaves nothing behind and says what to do") {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.attn";
  Put(path, "yesterday's");
  // A limit on the size of files fails a write as a full disk does, half-way.
  rlimit before;
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  rlimit small{64, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const absl::Status status = WriteReportFile(Sample(), path, true);
  const absl::Status fresh = WriteReportFile(Sample(), folder.path() + "/b.attn", false);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  CHECK(absl::IsResourceExhausted(status));
  CHECK(absl::IsResourceExhausted(fresh));
  CHECK(absl::StrContains(status.message(), "-o"));
  CHECK(Bytes(path) == "yesterday's");
  CHECK(FilesIn(folder) == 1);

  CHECK(absl::IsResourceExhausted(WriteReportFile(Sample(), "/dev/full", false)));
}

TEST_CASE("places that cannot be written to") {
  TemporaryFolder folder;
  CHECK(absl::IsNotFound(WriteReportFile(Sample(), folder.path() + "/none/a.attn", false)));
  CHECK(absl::IsInvalidArgument(WriteReportFile(Sample(), folder.path(), true)));
  CHECK(WriteReportFile(Sample(), "/dev/null", false).ok());
}

TEST_CASE("what is no report is named") {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/x";
  const auto message = [&](const std::string& bytes) {
    Put(path, bytes);
    const absl::Status status = ReadReportFile(path).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  CHECK(absl::StrContains(message(""), "empty"));
  CHECK(absl::StrContains(message("just text\n"), "text"));
  CHECK(absl::StrContains(message("{\"format_version\": 1}"), "JSON"));
  CHECK(absl::StrContains(message("\x1f\x8b\x08 zipped"), "gunzip"));
  CHECK(absl::StrContains(message("\x7f"
                                  "ELF\x02\x01"),
                          "program"));
  CHECK(absl::StrContains(message(std::string("\0\0\0\1", 4)), "not a report"));
  testing::SpoolBuilder spool;
  CHECK(absl::StrContains(message(std::string(spool.bytes(), 8192)), "attntrace recover"));
  CHECK(absl::IsNotFound(ReadReportFile(folder.path() + "/none").status()));
  CHECK(absl::StrContains(ReadReportFile(folder.path()).status().message(), "recover"));
}

TEST_CASE("a report cut anywhere is found to be so") {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.attn";
  REQUIRE(WriteReportFile(Sample(), path, false).ok());
  const std::string whole = Bytes(path);
  for (size_t size = 1; size < whole.size(); ++size) {
    Put(path, whole.substr(0, size));
    INFO(size << " of " << whole.size());
    REQUIRE(absl::IsDataLoss(ReadReportFile(path).status()));
  }
  Put(path, whole + whole);
  CHECK(absl::IsDataLoss(ReadReportFile(path).status()));
}

TEST_CASE("a newer report is read as far as it is known, and kept whole") {
  TemporaryFolder folder;
  const std::string path = folder.path() + "/a.attn";
  Report newer = Sample();
  newer.set_format_version(2);
  newer.GetReflection()->MutableUnknownFields(&newer)->AddLengthDelimited(900, "of tomorrow");
  REQUIRE(WriteReportFile(newer, path, false).ok());
  const auto back = ReadReportFile(path);
  REQUIRE(back.ok());
  REQUIRE(back->blind_spots_size() == 1);
  CHECK(back->blind_spots(0).code() == "newer-format");
  REQUIRE(WriteReportFile(*back, path, true).ok());
  CHECK(absl::StrContains(Bytes(path), "of tomorrow"));
  CHECK(ReadReportFile(path).ok());
}

}  // namespace
}  // namespace attntrace
