#include "report/text_units.h"

#include "tests/unit/catch.h"

namespace attntrace {
namespace {

TEST_CASE("bytes in binary units with three significant digits") {
  CHECK(FormatBytes(0) == "0 B");
  CHECK(FormatBytes(1023) == "1023 B");
  CHECK(FormatBytes(1024) == "1 KiB");
  CHECK(FormatBytes(1536) == "1.5 KiB");
  CHECK(FormatBytes(1023 * 1024) == "1023 KiB");
  CHECK(FormatBytes((1 << 20) - 1) == "1 MiB");
  CHECK(FormatBytes(28 << 20) == "28 MiB");
  CHECK(FormatBytes(1159641170) == "1.08 GiB");
  CHECK(FormatBytes(int64_t{5} << 50) == "5 PiB");
  CHECK(FormatBytes(-2048) == "-2 KiB");
}

TEST_CASE("nanoseconds") {
  CHECK(FormatNs(0) == "0 ns");
  CHECK(FormatNs(750) == "750 ns");
  CHECK(FormatNs(1234) == "1.23 us");
  CHECK(FormatNs(999'600) == "1 ms");
  CHECK(FormatNs(2'700'000'000) == "2.7 s");
  CHECK(FormatNs(7'200'000'000'000) == "7200 s");
}

TEST_CASE("shapes") {
  CHECK(FormatShape({}) == "()");
  CHECK(FormatShape({1, 8, 512, 64}) == "(1, 8, 512, 64)");
}

}  // namespace
}  // namespace attntrace
