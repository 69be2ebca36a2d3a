// Where the modules were built that a finding is about. Pure functions; any thread.
#pragma once

#include <vector>

#include "report/report.pb.h"

namespace attntrace {

// For each place the user's line, or the library's where no user's is known. In the order of the finding's variants and
// incidents, without repeats; pointers stay valid as long as the report.
std::vector<const Frame*> BuiltFrames(const Report& report, const Finding& finding);

}  // namespace attntrace
