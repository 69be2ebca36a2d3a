#include "report/dump.h"

#include <cstdio>
#include <string>

#include "report/decode.h"
#include "tests/unit/catch.h"
#include "tests/unit/report/sample.h"

namespace attntrace {
namespace {

using testing::FillSample;
using testing::SpoolBuilder;
using testing::TemporaryFolder;

template <typename Dump>
std::string Captured(Dump dump) {
  FILE* out = std::tmpfile();
  CHECK(dump(out).ok());
  std::string text(static_cast<size_t>(std::ftell(out)), '\0');
  std::rewind(out);
  CHECK(std::fread(text.data(), 1, text.size(), out) == text.size());
  std::fclose(out);
  return text;
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("a spool is dumped one record a line") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  FillSample(builder);
  builder.String("two\nlines");
  const std::string path = builder.Write(folder, "a");
  const std::string text = Captured([&](FILE* out) { return DumpSpool(path, out); });
  CHECK(Has(text, "header version=" + std::to_string(spool::kVersion) + " pid=4711 "));
  CHECK(Has(text, "\ncounter cpu_peak_bytes=4294967296\n"));
  CHECK(Has(text, "\nrecord 1 string \"torch\"\n"));
  CHECK(Has(text, " phase=backward backend=math kind=dense "));
  CHECK(Has(text, " q=float32[2,4,128,16]/[8192,2048,16,1]@cpu:0 "));
  CHECK(Has(text, "string \"two\\nlines\"\n"));
  CHECK(Has(text, "\ncounters slot=0 calls=336 "));
  CHECK(Has(text, "\nevent 3 end_ns=3000 slot=0 "));
  CHECK_FALSE(DumpSpool(folder.path() + "/none", stdout).ok());
}

TEST_CASE("a report is dumped one record a line") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  FillSample(builder);
  const auto report = DecodeSpools({builder.Write(folder, "a")}, testing::SampleRun());
  REQUIRE(report.ok());
  const std::string text = Captured([&](FILE* out) { return DumpReport(*report, out); });
  CHECK(Has(text, "format_version 1\n"));
  CHECK(Has(text, "\nvariants[2] id: 3 "));
  CHECK(Has(text, "\ntotals forward_calls: 352 "));
  size_t lines = 0;
  for (char c : text) lines += c == '\n';
  CHECK(lines == 6 +
                     static_cast<size_t>(report->processes_size() + report->frames_size() + report->call_paths_size() +
                                         report->variants_size() + report->recent_calls_size()) -
                     1);
}

TEST_CASE("a dump that cannot be written says so") {
  FILE* full = std::fopen("/dev/full", "w");
  REQUIRE(full != nullptr);
  Report report;
  report.set_producer("attntrace test");
  CHECK_FALSE(DumpReport(report, full).ok());
  std::fclose(full);
}

}  // namespace
}  // namespace attntrace
