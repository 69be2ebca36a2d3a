// A spool or a report as plain text: one record a line, in the file's own order, for grep and for a person who doubts a
// summary.
#pragma once

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "report/report.pb.h"

namespace attntrace {

// Errors as of Spool::Open; a damaged spool is shown as far as it goes, with a last line that says so.
absl::Status DumpSpool(const std::string& path, FILE* out);
// Unknown when `out` cannot be written.
absl::Status DumpReport(const Report& report, FILE* out);

}  // namespace attntrace
