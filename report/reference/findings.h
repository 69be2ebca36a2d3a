// What reference runs say about findings.
#pragma once

#include "report/report.pb.h"

namespace attntrace {

// Fills the figures of every finding and marks its advice from Report.reference_runs; what an earlier call filled is replaced.
void ApplyReference(Report* report);

}  // namespace attntrace
