// Reference runs that were made inside the traced program: whose they are, and what is missing.
#pragma once

#include "report/report.pb.h"

namespace attntrace {

// Gives each run all variants that it answers for, as PlanReference puts them together, says of every case without a run why
// there is none, and fills the findings (findings.h). Runs that no finding asks for are dropped.
void SettleInProgram(Report* report);

}  // namespace attntrace
