// Whatever bytes a spool holds, decoding and showing it ends, in order or with an error. Run it under the sanitizers too.
#include <cstdio>
#include <random>

#include "report/decode.h"
#include "report/dump.h"
#include "report/writers/writers.h"
#include "tests/unit/catch.h"
#include "tests/unit/report/sample.h"

namespace attntrace {
namespace {

using testing::FillSample;
using testing::SampleRun;
using testing::SpoolBuilder;
using testing::TemporaryFolder;

// A file rewritten in place, byte by byte: making 7 MiB anew for each would take the test minutes.
class Patched {
 public:
  Patched(SpoolBuilder& builder, const TemporaryFolder& folder)
      : path_(builder.Write(folder, "patched.spool")), file_(std::fopen(path_.c_str(), "r+b")) {}
  ~Patched() { std::fclose(file_); }
  void Put(size_t offset, char byte) {
    std::fseek(file_, static_cast<long>(offset), SEEK_SET);
    std::fwrite(&byte, 1, 1, file_);
    std::fflush(file_);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  FILE* file_;
};

// Indices of a report point into it.
void CheckWhole(const Report& report) {
  for (const Variant& variant : report.variants()) {
    REQUIRE(variant.process() < static_cast<uint32_t>(report.processes_size()));
    REQUIRE(variant.call_path() <= static_cast<uint32_t>(report.call_paths_size()));
    REQUIRE((variant.call_path() != 0 || !variant.no_call_path().empty()));
    REQUIRE(variant.forward() <= static_cast<uint32_t>(report.variants_size()));
  }
  for (const CallPath& path : report.call_paths()) {
    for (uint32_t frame : path.frames()) REQUIRE(frame < static_cast<uint32_t>(report.frames_size()));
    REQUIRE(path.call_site() < path.frames_size());
    REQUIRE(path.user() < path.frames_size());
  }
  for (const RecentCall& call : report.recent_calls()) {
    REQUIRE(call.variant() > 0);
    REQUIRE(call.variant() <= static_cast<uint32_t>(report.variants_size()));
  }
}

void Try(const std::string& path) {
  const auto report = DecodeSpools({path}, SampleRun());
  if (!report.ok()) return;
  CheckWhole(*report);
  for (const Writer& writer : AllWriters()) REQUIRE_FALSE(writer.write(*report, {}).empty());
}

TEST_CASE("every byte of a small spool changed, one at a time") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  const testing::SampleFrames frames(builder);
  const auto slot = builder.Variant(builder.Sdpa(builder.Path({frames.own, frames.main}), Backend::kMath, PathKind::kDense), 5);
  builder.Layer(slot, 1);
  builder.Gate(slot, Backend::kFlash, 1, "no");
  builder.Note("code", "text");
  builder.Event(1, slot, 5);
  Patched file(builder, folder);
  std::vector<std::pair<size_t, size_t>> ranges = {{0, sizeof(spool::Header)},
                                                   {spool::kCountersOffset, spool::kCountersOffset + 128},
                                                   {spool::kRingOffset, spool::kRingOffset + sizeof(spool::Event)},
                                                   {spool::kLogOffset, builder.used() + 8}};
  size_t tried = 0;
  for (const auto& [begin, end] : ranges) {
    for (size_t at = begin; at < end; ++at, ++tried) {
      const char before = builder.bytes()[at];
      file.Put(at, static_cast<char>(before ^ static_cast<char>(tried % 2 == 0 ? 0xFF : 0x08)));
      Try(file.path());
      file.Put(at, before);
    }
  }
  CHECK(tried > 2000);
}

TEST_CASE("a spool cut at every place of its log") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  const testing::SampleFrames frames(builder);
  builder.Variant(builder.Sdpa(builder.Path({frames.own, frames.main}), Backend::kMath, PathKind::kDense), 5);
  const std::string path = builder.Write(folder, "cut.spool");
  for (size_t size = builder.used() + 16; size > spool::kLogOffset; size -= 3) {
    REQUIRE(truncate(path.c_str(), static_cast<off_t>(size)) == 0);
    const auto report = DecodeSpools({path}, SampleRun());
    REQUIRE(report.ok());
    CheckWhole(*report);
    REQUIRE(report->blind_spots_size() > 0);
  }
  for (size_t size :
       {spool::kLogOffset, spool::kRingOffset + 3, spool::kCountersOffset, size_t{4095}, size_t{100}, size_t{7}, size_t{0}}) {
    REQUIRE(truncate(path.c_str(), static_cast<off_t>(size)) == 0);
    Try(path);
  }
}

TEST_CASE("random damage of a full sample") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  FillSample(builder);
  Patched file(builder, folder);
  std::mt19937 random(20240611);  // fixed: a failure must come back
  for (int round = 0; round < 300; ++round) {
    std::vector<size_t> changed;
    for (int i = 0; i < 1 + round % 20; ++i) {
      const size_t at = spool::kLogOffset + random() % (builder.used() - spool::kLogOffset);
      file.Put(at, static_cast<char>(random()));
      changed.push_back(at);
    }
    Try(file.path());
    for (size_t at : changed) file.Put(at, builder.bytes()[at]);
  }
}

TEST_CASE("the dump of a damaged spool goes as far as the spool does") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  FillSample(builder);
  Patched file(builder, folder);
  FILE* out = std::tmpfile();
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const size_t at = spool::kLogOffset + random() % (builder.used() - spool::kLogOffset);
    file.Put(at, static_cast<char>(random()));
    std::rewind(out);
    CHECK(DumpSpool(file.path(), out).ok());
    file.Put(at, builder.bytes()[at]);
  }
  std::fclose(out);
}

}  // namespace
}  // namespace attntrace
