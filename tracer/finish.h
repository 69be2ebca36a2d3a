// From a spool folder to a report file and a summary: the second half of `run`, and the whole of `recover`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "report/run_facts.h"
#include "tracer/options.h"

namespace attntrace {

struct FinishRequest {
  std::string folder;       // spool folder
  std::string report_path;  // to write; as the user gave it
  RunFacts facts;
  bool force = false;  // overwrite
  // Not empty: why the spools cannot be read. The report is then made without them, and says so.
  std::string unreadable = "";
};

struct Finished {
  bool written = false;   // the report is safely on disk
  bool findings = false;  // there are warnings or errors
  bool running = false;   // traced processes were still running
};

// Decodes, judges, writes, and prints the summary on standard error, its last line SUMMARY. An error only where the spools
// cannot be read at all; a report that cannot be written is said, with the next step, and told by `written`.
absl::StatusOr<Finished> Finish(const FinishRequest& request, const OptionValues& options);

}  // namespace attntrace
