#include "report/decode/symbolise.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "report/decode.h"
#include "tests/unit/catch.h"
#include "tests/unit/report/sample.h"

namespace attntrace {
namespace {

bool HasAddr2line() { return std::system("addr2line --version >/dev/null 2>&1") == 0; }

// An address inside a function of this file, as an offset in the running program.
uint64_t OffsetHere(std::string* object) {
  Dl_info info;
  REQUIRE(dladdr(reinterpret_cast<void*>(&OffsetHere), &info) != 0);
  *object = std::filesystem::canonical("/proc/self/exe");
  return reinterpret_cast<uint64_t>(&OffsetHere) - reinterpret_cast<uint64_t>(info.dli_fbase) + 8;
}

TEST_CASE("a native frame gets its function and source line") {
  if (!HasAddr2line()) return;  // binutils is optional, and so is what it gives
  std::string object;
  const uint64_t offset = OffsetHere(&object);
  Symboliser symboliser;
  symboliser.Announce(object, offset);
  symboliser.Announce(object, offset);
  const Symboliser::Line* line = symboliser.Lookup(object, offset);
  REQUIRE(line != nullptr);
  CHECK(absl::StrContains(line->function, "OffsetHere"));
  CHECK(absl::EndsWith(line->file, "symbolise_test.cc"));
  CHECK(line->line > 15);
  CHECK(line->line < 40);

  testing::TemporaryFolder folder;
  testing::SpoolBuilder builder;
  const uint32_t here = builder.Native(object, offset),
                 torch = builder.Native("/opt/libtorch/lib/libtorch_cpu.so", 99, "at::x()");
  builder.Variant(builder.Sdpa(builder.Path({torch, here}, spool::kPathNoPython), Backend::kFlash, PathKind::kFused), 1);
  const auto report = DecodeSpools({builder.Write(folder, "a")}, testing::SampleRun());
  REQUIRE(report.ok());
  CHECK(report->frames(0).function() == "at::x()");
  CHECK(report->frames(0).owner() == "torch");
  CHECK(absl::EndsWith(report->frames(1).file(), "symbolise_test.cc"));
  CHECK(report->frames(1).owner() == "user");
  CHECK(report->call_paths(0).call_site() == 1);
}

TEST_CASE("what cannot be looked up stays as the record has it") {
  Symboliser symboliser;
  symboliser.Announce("/nowhere/at/all", 16);
  CHECK(symboliser.Lookup("/nowhere/at/all", 16) == nullptr);
  symboliser.Announce("/dev/null", 16);
  CHECK(symboliser.Lookup("/dev/null", 16) == nullptr);
  CHECK(symboliser.Lookup("/dev/null", 17) == nullptr);
}

}  // namespace
}  // namespace attntrace
