// run.json in the spool folder: what the launcher knows about a run, so that `attntrace recover` can make the same report when
// the launcher died. Written before the program starts and again when it has ended. Never read by a traced process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/run_facts.h"

namespace attntrace {

struct RunRecord {
  std::vector<std::string> command;
  std::string host;
  std::string directory;  // working directory of the launcher
  uint64_t start_unix_ns = 0;
  uint64_t duration_ns = 0;
  int launcher_pid = 0;
  uint64_t launcher_start_ticks = 0;  // 0: unknown
  std::string report;                 // absolute path of the report that was asked for
  bool kept = false;                  // left on purpose (keep-spool): nobody is reminded of it
  std::string ended = "unknown";      // exit, signal, or unknown while it runs
  int exit_code = 0;
  int signal = 0;
};

std::string RunRecordToJson(const RunRecord& record);
// DataLoss where the text is not such a record.
absl::StatusOr<RunRecord> RunRecordFromJson(const std::string& text);

absl::Status WriteRunRecord(const std::string& folder, const RunRecord& record);
absl::StatusOr<RunRecord> ReadRunRecord(const std::string& folder);

// Whether the launcher that wrote it still runs. On another host nobody can tell: then it counts as running.
bool LauncherRuns(const RunRecord& record);

RunFacts FactsOf(const RunRecord& record);

}  // namespace attntrace
