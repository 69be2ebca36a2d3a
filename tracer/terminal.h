// What the terminal behind a file descriptor can do.
#pragma once

#include "absl/strings/string_view.h"

namespace attntrace {

// `mode` is the option color: auto, always, never. Auto: a terminal that is not "dumb", and NO_COLOR is not set.
bool UseColor(absl::string_view mode, int descriptor);

// Columns to fill: those of the terminal within reading width, 100 where there is none.
int TextWidth(int descriptor);

}  // namespace attntrace
