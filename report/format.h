// Names and numbers of the report file that its writer and its reader share.
#pragma once

#include <cstdint>

namespace attntrace {

inline constexpr uint32_t kReportFormatVersion = 1;
inline constexpr char kProducer[] = "attntrace " ATTNTRACE_VERSION;

}  // namespace attntrace
