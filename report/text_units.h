// Numbers as people read them, the same in every rule and every writer. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace attntrace {

// Bytes in binary units with three significant digits and no trailing zeros: "0 B", "640 B", "28 MiB", "1.08 GiB".
std::string FormatBytes(int64_t bytes);

// Nanoseconds likewise: "750 ns", "1.2 us", "16 ms", "2.7 s".
std::string FormatNs(uint64_t ns);

// "(1, 8, 512, 64)"; "()" for a scalar.
std::string FormatShape(absl::Span<const int64_t> sizes);

}  // namespace attntrace
