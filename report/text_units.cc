#include "report/text_units.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace attntrace {
namespace {

// 1023 stays "1023": %.3g would write it as 1.02e+03.
std::string ThreeDigits(double value) {
  return std::abs(value) >= 999.5 ? absl::StrFormat("%.0f", value) : absl::StrFormat("%.3g", value);
}

}  // namespace

std::string FormatBytes(int64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = static_cast<double>(bytes);
  if (std::abs(value) < 1024) return absl::StrCat(bytes, " B");
  int unit = -1;
  // 1023.5 rounds to 1024, which is one of the next unit.
  while (std::abs(value) >= 1023.5 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  return absl::StrCat(ThreeDigits(value), " ", kUnits[unit < 0 ? 0 : unit]);
}

std::string FormatNs(uint64_t ns) {
  static constexpr const char* kUnits[] = {"ns", "us", "ms", "s"};
  double value = static_cast<double>(ns);
  int unit = 0;
  while (value >= 999.5 && unit < 3) {
    value /= 1000;
    ++unit;
  }
  return absl::StrCat(ThreeDigits(value), " ", kUnits[unit]);
}

std::string FormatShape(absl::Span<const int64_t> sizes) { return absl::StrCat("(", absl::StrJoin(sizes, ", "), ")"); }

}  // namespace attntrace
