#include "tracer/finish.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/decode.h"
#include "report/file.h"
#include "report/rules/rules.h"
#include "report/writers/writers.h"
#include "tracer/outcome.h"
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

std::string WhyUntraced(const FinishRequest& request) {
  if (!request.untraced_reason.empty()) return request.untraced_reason;
  if (!request.facts.untraced.empty()) return request.facts.untraced.front().reason;
  return "no process loaded PyTorch";
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
  absl::StatusOr<SpoolFolder> folder = ReadSpoolFolder(request.folder);
  if (!folder.ok()) return folder.status();
  Finished finished;
  const std::vector<pid_t> running = StillRunning(folder->processes, kGraceMs);
  finished.running = !running.empty();

  FinishRequest asked = request;
  asked.facts.untraced = folder->untraced;
  absl::StatusOr<Report> report = DecodeSpools(folder->spools, asked.facts);
  if (!report.ok()) return report.status();
  RunRules(&*report);
  finished.findings = std::any_of(report->findings().begin(), report->findings().end(), IsWorthFailing);

  const absl::Status written = WriteReportFile(*report, request.report_path, request.force);
  finished.written = written.ok();
  if (!written.ok()) {
    Say(absl::StrCat(written.message(), "; the spools are kept, make the report elsewhere: attntrace recover ", request.folder,
                     " -o FILE"));
  } else if (finished.running) {
    Say(absl::StrCat("still running and reported as far as they got: pid ", absl::StrJoin(running, ", "),
                     "; once they have ended: attntrace recover -f ", request.folder));
  }
  if (!options.Flag("quiet") && !AnythingTraced(*report)) Say(absl::StrCat("nothing was traced: ", WhyUntraced(asked)));
  PrintSummary(*report, finished.written ? request.report_path : "", options);
  return finished;
}

}  // namespace attntrace
