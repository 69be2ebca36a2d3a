#include "report/spool_reader.h"

#include <fstream>

#include "absl/strings/match.h"
#include "tests/unit/catch.h"
#include "tests/unit/report/spool_builder.h"

namespace attntrace {
namespace {

using testing::SpoolBuilder;
using testing::TemporaryFolder;

absl::Status OpenStatus(const std::string& path) { return Spool::Open(path).status(); }

TEST_CASE("a spool's records, counters and events are read as they were written") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  builder.Count(Counter::kFaults, 3);
  const auto slot = builder.Variant(builder.Sdpa(0, Backend::kFlash, PathKind::kFused), 7, 99);
  builder.Event(1, slot, 10);
  builder.Event(2, slot, 20);
  const auto spool = Spool::Open(builder.Write(folder, "a.spool"));
  REQUIRE(spool.ok());
  CHECK(spool->header().pid == 4711);
  CHECK(spool->counter(Counter::kFaults) == 3);
  CHECK(spool->counters(slot).calls == 7);
  CHECK(spool->counters(slot).peak_bytes == 99);
  REQUIRE(spool->records().size() == 3);  // two strings and the variant
  CHECK(spool->records()[0].payload == "aten::scaled_dot_product_attention");
  CHECK(spool->records()[2].kind == spool::RecordKind::kVariant);
  CHECK(spool->records()[2].As<spool::VariantDef>()->backend == Backend::kFlash);
  REQUIRE(spool->Events().size() == 2);
  CHECK(spool->Events()[1]->end_ns == 20);
  CHECK(spool->missing_bytes() == 0);
  CHECK(spool->damaged_bytes() == 0);
}

TEST_CASE("events come oldest first after the ring has turned, and torn ones are left out") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  for (uint64_t i = 1; i <= spool::kRingEvents + 5; ++i) builder.Event(i, 0, i);
  auto* ring = reinterpret_cast<spool::Event*>(builder.bytes() + spool::kRingOffset);
  ring[100].sequence = 0;   // being written
  ring[200].sequence = 17;  // of another place
  const auto spool = Spool::Open(builder.Write(folder, "a.spool"));
  REQUIRE(spool.ok());
  const auto events = spool->Events();
  REQUIRE(events.size() == spool::kRingEvents - 2);
  CHECK(events.front()->end_ns == 6);
  CHECK(events.back()->end_ns == spool::kRingEvents + 5);
}

TEST_CASE("what is no spool of this version is refused with the reason") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  SECTION("no file") { CHECK(absl::IsNotFound(OpenStatus(folder.path() + "/none"))); }
  SECTION("a folder") { CHECK_FALSE(OpenStatus(folder.path()).ok()); }
  SECTION("another file") {
    const std::string path = folder.path() + "/text";
    std::ofstream(path) << "hello, this is a text and no spool";
    CHECK(absl::StrContains(OpenStatus(path).message(), "not a spool"));
  }
  SECTION("an empty file") { CHECK(absl::StrContains(OpenStatus(builder.Write(folder, "e", 0)).message(), "not a spool")); }
  SECTION("another version") {
    builder.header().version = spool::kVersion + 1;
    const absl::Status status = OpenStatus(builder.Write(folder, "v"));
    CHECK(absl::StrContains(status.message(), "made by another version of attntrace"));
    CHECK(absl::StrContains(status.message(), "read it with that one"));
  }
  SECTION("cut short in its header") {
    CHECK(absl::IsDataLoss(OpenStatus(builder.Write(folder, "h", spool::kHeaderBytes - 1))));
    CHECK(absl::IsDataLoss(OpenStatus(builder.Write(folder, "h", 9))));
  }
}

TEST_CASE("a file cut short behind its header is read as far as it goes") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  builder.String("first");
  const size_t kept = builder.used();
  builder.String("second");
  const auto spool = Spool::Open(builder.Write(folder, "a.spool", kept + 20));  // the second record's header, and four letters
  REQUIRE(spool.ok());
  CHECK(spool->missing_bytes() == spool::kFileBytes - kept - 20);
  CHECK(spool->records().size() == 2);
  CHECK(spool->records()[0].payload == "first");
}

TEST_CASE("a record that makes no sense ends the log, and says how much is lost") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  builder.String("first");
  auto* record = reinterpret_cast<spool::RecordHeader*>(builder.bytes() + builder.used());
  builder.String("second");
  builder.String("third");
  const size_t lost = builder.used() - static_cast<size_t>(reinterpret_cast<char*>(record) - builder.bytes());
  SECTION("size") { record->bytes = 12; }
  SECTION("larger than the file") { record->bytes = 0xFFFFFFF8; }
  SECTION("kind") { record->kind = static_cast<spool::RecordKind>(77); }
  SECTION("kind zero") { record->kind = static_cast<spool::RecordKind>(0); }
  SECTION("payload larger than the record") { record->payload_bytes = 4000; }
  const auto spool = Spool::Open(builder.Write(folder, "a.spool"));
  REQUIRE(spool.ok());
  CHECK(spool->records().size() == 1);
  CHECK(spool->damaged_bytes() == lost);
}

TEST_CASE("a record still being written is the end, and no damage") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  builder.String("first");
  auto* record = reinterpret_cast<spool::RecordHeader*>(builder.bytes() + builder.used());
  builder.String("second");
  record->bytes = 0;
  const auto spool = Spool::Open(builder.Write(folder, "a.spool"));
  REQUIRE(spool.ok());
  CHECK(spool->records().size() == 1);
  CHECK(spool->damaged_bytes() == 0);
}

}  // namespace
}  // namespace attntrace
