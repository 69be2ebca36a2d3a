// attntrace recover DIR
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tracer/arguments.h"
#include "tracer/command.h"
#include "tracer/finish.h"
#include "tracer/report_name.h"
#include "tracer/run_record.h"
#include "tracer/spool_folder.h"

namespace attntrace {
namespace {

absl::Status RefuseWhileRunning(const std::string& directory, const RunRecord& record, const SpoolFolder& folder) {
  const std::string next = absl::StrCat("wait for the end, or report what there is so far: attntrace recover -f ", directory);
  if (LauncherRuns(record)) {
    return absl::FailedPreconditionError(
        absl::StrCat("attntrace ", record.launcher_pid, " on ", record.host, " still writes this run's report; ", next));
  }
  const std::vector<pid_t> running = StillRunning(folder.processes, 0);
  if (running.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("traced processes still run: ", absl::StrJoin(running, ", "), "; ", next));
}

}  // namespace

absl::StatusOr<int> RecoverCommand(const CommandLine& line) {
  OptionValues options;
  if (absl::Status status = SetFromEnvironment(options); !status.ok()) return status;
  std::string directory;
  absl::Status failure;
  CLI::App app("Makes the report from the spools of a run whose launcher died.", "attntrace recover");
  app.add_option("DIR", directory, "spool folder, <report>.attntrace.d")->required();
  AddOptions(app, {"output", "force", "quiet", "verbose", "color", "keep-spool"}, &options, &failure);
  app.footer("-f also reports a run that is still going on, as far as it got; its folder then stays.");
  const absl::StatusOr<bool> go_on = ParseArguments(app, line.arguments, &failure);
  if (!go_on.ok()) return go_on.status();
  if (!*go_on) return 0;

  const absl::StatusOr<RunRecord> record = ReadRunRecord(directory);
  if (!record.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(record.status().message(), "; ", directory, " is no spool folder of attntrace"));
  }
  const absl::StatusOr<SpoolFolder> folder = ReadSpoolFolder(directory);
  if (!folder.ok()) return folder.status();
  const bool force = options.Flag("force");
  const absl::Status at_rest = RefuseWhileRunning(directory, *record, *folder);
  if (!at_rest.ok() && !force) return at_rest;

  std::string report_path = record->report;
  if (const std::string asked = options.Text("output"); !asked.empty()) {
    NameFacts facts = CurrentNameFacts();
    facts.pid = record->launcher_pid;
    const absl::StatusOr<std::string> expanded = ReportPath(asked, record->command, facts);
    if (!expanded.ok()) return expanded.status();
    report_path = *expanded;
  }
  if (absl::Status status = CheckReportPath(report_path, force); !status.ok()) return status;
  const absl::StatusOr<Finished> finished =
      Finish({.folder = directory, .report_path = report_path, .facts = FactsOf(*record), .force = force}, options);
  if (!finished.ok()) return finished.status();
  if (!finished->written) return absl::UnavailableError("no report was written");
  if (at_rest.ok() && !finished->running && !options.Flag("keep-spool")) RemoveSpoolFolder(directory);
  return 0;
}

}  // namespace attntrace
