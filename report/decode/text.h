// Strings of a traced process made fit for a report: whatever bytes it wrote, Protobuf's string fields hold UTF-8.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace attntrace {

// Bytes that are not UTF-8 become U+FFFD, so that a file name in Latin-1 still shows.
std::string CleanUtf8(absl::string_view bytes);

}  // namespace attntrace
