// From the spools of a run's processes to the one report a user keeps. Outside the traced processes; any one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/report.pb.h"
#include "report/run_facts.h"

namespace attntrace {

// Reads every spool; order does not matter, processes are put in order of their start. A spool that cannot be used becomes a
// blind spot of the report; only when none of several can be used is that an error. No spools at all make a report without
// processes but the untraced ones. Findings are not judged here: see report/rules/rules.h.
absl::StatusOr<Report> DecodeSpools(const std::vector<std::string>& spool_files, const RunFacts& run);

}  // namespace attntrace
