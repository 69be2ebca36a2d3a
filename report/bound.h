// Keeps a report small whatever ran: what does not fit is counted together, and says so itself. Nothing that was counted is
// lost: calls, bytes and times are summed, peaks are the highest.
#pragma once

#include <cstddef>

#include "report/report.pb.h"

namespace attntrace {

// A report of one process has at most a megabyte (docs/report-format.md). Bytes of the file; of each process that was read.
inline constexpr size_t kObservedLimit = 780'000;  // all but findings and reference runs
inline constexpr size_t kFindingsLimit = 150'000;

// For a decoded report, before its totals and findings. In this order, only as far as is needed: shapes of one call path are
// counted together (Variant.shapes_folded), call paths lose their outermost frames (CallPath.truncated; the user's line stays),
// long texts are cut short ("..."), and at last call paths are counted together (Variant.no_call_path).
void BoundReport(size_t limit, Report* report);

// For a judged report: of findings in order, worst first, those that fit; a blind spot counts the others.
void BoundFindings(size_t limit, Report* report);

}  // namespace attntrace
