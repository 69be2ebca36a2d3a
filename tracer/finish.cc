#include "tracer/finish.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/decode.h"
#include "report/file.h"
#include "report/reference/in_program.h"
#include "report/rules/rules.h"
#include "report/writers/writers.h"
#include "tracer/outcome.h"
#include "tracer/reference.h"
#include "tracer/spool_folder.h"
#include "tracer/terminal.h"

namespace attntrace {
namespace {

constexpr int kGraceMs = 300;  // helpers of a program often outlive it by this little

bool IsWorthFailing(const Finding& finding) { return SeverityOf(finding.severity()) != Severity::kNote; }

bool AnythingTraced(const Report& report) {
  return std::any_of(report.processes().begin(), report.processes().end(),
                     [](const Process& process) { return process.tracing() == "traced"; });
}

// The summary, and as the very last line the one made for scripts.
void PrintSummary(const Report& report, const std::string& path, const OptionValues& options) {
  const std::string last = SummaryLine(report, path);
  const Writer* text = FindWriter("text");
  std::string summary;
  if (!options.Flag("quiet") && text != nullptr) {
    WriterOptions how;
    how.color = UseColor(options.Text("color"), STDERR_FILENO);
    how.width = TextWidth(STDERR_FILENO);
    how.report_path = path;
    how.verbose = options.Flag("verbose");
    summary = text->write(report, how);
  }
  if (!absl::EndsWith(summary, absl::StrCat(last, "\n"))) absl::StrAppend(&summary, last, "\n");
  std::fputs(summary.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

absl::StatusOr<Finished> Finish(const FinishRequest& request, const OptionValues& options) {
  const absl::StatusOr<SpoolFolder> found = ReadSpoolFolder(request.folder);
  if (!found.ok() && request.unreadable.empty()) return found.status();
  const SpoolFolder folder = found.ok() ? *found : SpoolFolder();
  Finished finished;
  const std::vector<pid_t> running = StillRunning(folder.processes, kGraceMs);
  finished.running = !running.empty();

  FinishRequest asked = request;
  asked.facts.untraced = folder.untraced;
  if (!request.unreadable.empty()) {
    for (const TracedProcess& process : folder.processes) asked.facts.untraced.push_back({process.pid, request.unreadable});
  }
  absl::StatusOr<Report> report =
      DecodeSpools(request.unreadable.empty() ? folder.spools : std::vector<std::string>(), asked.facts);
  if (!report.ok()) return report.status();
  RunRules(&*report);
  const std::string reference = options.Text("reference");
  if (reference == "inline" || (reference == "off" && report->reference_runs_size() > 0)) SettleInProgram(&*report);
  finished.findings = std::any_of(report->findings().begin(), report->findings().end(), IsWorthFailing);

  const absl::Status written = WriteReportFile(*report, request.report_path, request.force);
  finished.written = written.ok();
  if (reference == "after") {  // the report is safe by now, whatever becomes of these
    const std::string why = RunReferences(LimitsOf(options), &*report);
    if (!why.empty() && options.Flag("verbose")) Say(absl::StrCat("no reference runs: ", why));
    if (finished.written && report->reference_runs_size() > 0) {
      if (absl::Status again = WriteReportFile(*report, request.report_path, true); !again.ok()) Say(again.message());
    }
  }
  if (!written.ok()) {
    Say(absl::StrCat(written.message(), "; the spools are kept, make the report elsewhere: attntrace recover ", request.folder,
                     " -o FILE"));
  } else if (finished.running) {
    Say(absl::StrCat("still running and reported as far as they got: pid ", absl::StrJoin(running, ", "),
                     "; once they have ended: attntrace recover -f ", request.folder));
  }
  // A process that has PyTorch and no agent is in the report, with the reason; this case is not.
  if (!options.Flag("quiet") && asked.facts.untraced.empty() && !AnythingTraced(*report)) {
    Say("nothing was traced: no process loaded PyTorch");
  }
  PrintSummary(*report, finished.written ? request.report_path : "", options);
  return finished;
}

}  // namespace attntrace
