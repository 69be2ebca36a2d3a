// The report as a file. Errors name the file and the next step; the caller prints them as they are.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "report/report.pb.h"

namespace attntrace {

// Appears complete or not at all: written beside its place, synced, then moved there. AlreadyExists without `force` where the
// path is taken; ResourceExhausted where the disk is full; nothing is left behind in either case. A path that is a device or a
// pipe is written to as it stands.
absl::Status WriteReportFile(const Report& report, const std::string& path, bool force);

// NotFound, PermissionDenied; InvalidArgument for a file that is no report, saying what it is; DataLoss for one cut short or
// damaged. A report of a newer format is read as far as it is known here, which becomes one of its blind spots.
absl::StatusOr<Report> ReadReportFile(const std::string& path);

}  // namespace attntrace
