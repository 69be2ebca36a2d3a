// What a file is that was given in place of a report.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace attntrace {

// Empty for what may be a report; else one line: what it is instead and what to do with it.
std::string DescribeForeignFile(absl::string_view bytes, const std::string& path);

}  // namespace attntrace
