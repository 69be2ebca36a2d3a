// Which calls of a report are worth a reference run (kernels/steps.h: what to try on each): pure functions of the report, no
// process is started here (tracer/reference.h does that).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/steps.h"
#include "report/report.pb.h"

namespace attntrace {

// Variants that one set of runs answers for: the same shapes, flags and path, wherever they were called.
struct ReferenceCase : reference::Case {
  std::vector<uint32_t> variants;  // ids, forward or recompute
  int64_t observed_bytes = 0;  // highest peak of a call in the program: of its forward, or of its backward with what is kept
  int64_t weight = 0;          // bytes that there are to save, over all layers
  uint32_t process = 0;        // index into Report.processes
};

// Dense and quadratic calls that a finding names, the largest saving first.
std::vector<ReferenceCase> PlanReference(const Report& report);

ReferenceRun MakeRun(const std::vector<uint32_t>& variants, const reference::Done& done);

}  // namespace attntrace
