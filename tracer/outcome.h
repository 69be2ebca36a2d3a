// Where errors become lines and exit codes: nowhere else.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attntrace {

inline constexpr int kExitFailed = 1;  // doctor found something that does not work; an error that is nobody's input
inline constexpr int kExitUsage = 2;   // wrong usage or unusable input

int ExitCodeOf(const absl::Status& status);

// "attntrace: <text>" on standard error, one line.
void Say(absl::string_view text);

}  // namespace attntrace
