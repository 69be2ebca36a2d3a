// Which calls of a report are worth a reference run, and what to try on each: pure functions of the report, no process is
// started here (tracer/reference.h does that).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/protocol.h"
#include "report/report.pb.h"

namespace attntrace {

// Variants that one set of runs answers for: the same shapes, flags and path, wherever they were called.
struct ReferenceCase {
  std::vector<uint32_t> variants;  // ids, forward or recompute
  reference::Request call;         // without a path; with `backward` where a backward was seen
  std::string observed_path;       // of the reference, for the backend that ran
  bool flex = false;
  int64_t observed_bytes = 0;  // highest peak of a call in the program: of its forward, or of its backward with what is kept
  int64_t weight = 0;          // bytes that there are to save, over all layers
  uint32_t process = 0;        // index into Report.processes
};

// Dense and quadratic calls that a finding names, the largest saving first.
std::vector<ReferenceCase> PlanReference(const Report& report);

// What to ask next for a case, given what was answered: the path observed, a fused kernel on the same call, then the smallest
// changes that may free one. Nothing: the case is done.
struct ReferenceStep {
  std::string purpose;  // of ReferenceRun
  reference::Request request;
};
std::optional<ReferenceStep> NextStep(const ReferenceCase& one, const std::vector<ReferenceRun>& done);

// The changes that would do something to this call, in the order of kernels/protocol.h.
std::vector<std::string> ApplicableChanges(const reference::Request& call);

ReferenceRun MakeRun(const ReferenceCase& one, const ReferenceStep& step, const reference::Response& response);

}  // namespace attntrace
