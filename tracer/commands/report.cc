// attntrace report FILE [--format FORMAT]
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "report/file.h"
#include "report/writers/writers.h"
#include "tracer/arguments.h"
#include "tracer/command.h"
#include "tracer/near_names.h"
#include "tracer/reference.h"
#include "tracer/terminal.h"

namespace attntrace {

absl::StatusOr<int> ReportCommand(const CommandLine& line) {
  OptionValues options;
  if (absl::Status status = SetFromEnvironment(options); !status.ok()) return status;
  std::vector<absl::string_view> formats;
  std::string list;
  for (const Writer& writer : AllWriters()) {
    formats.push_back(writer.name);
    absl::StrAppend(&list, list.empty() ? "" : "|", writer.name);
  }
  std::string file, format = "text";
  absl::Status failure;
  CLI::App app("Shows a report on standard output.", "attntrace report");
  app.add_option("FILE", file, "report file")->required();
  app.add_option("--format", format, "how to show it (standard: text)")->type_name(list);
  bool reference = false;
  app.add_flag("--reference", reference,
               "make the reference runs now, on this machine (it needs the agent for the report's PyTorch), and keep them in FILE");
  AddOptions(app, {"color", "verbose", "reference-budget", "reference-memory"}, &options, &failure);
  const absl::StatusOr<bool> go_on = ParseArguments(app, line.arguments, &failure);
  if (!go_on.ok()) return go_on.status();
  if (!*go_on) return 0;

  const Writer* writer = FindWriter(format);
  if (writer == nullptr) {
    const std::string near = DidYouMean(format, formats);
    return absl::InvalidArgumentError(
        absl::StrCat("unknown format ", format, near.empty() ? absl::StrCat("; there are ", list) : near));
  }
  absl::StatusOr<Report> report = ReadReportFile(file);
  if (!report.ok()) return report.status();
  if (reference) {
    const std::string why = RunReferences(LimitsOf(options), &*report);
    if (!why.empty()) return absl::FailedPreconditionError(absl::StrCat("no reference runs: ", why));
    if (absl::Status written = WriteReportFile(*report, file, /*force=*/true); !written.ok()) return written;
  }
  WriterOptions how;
  how.color = UseColor(options.Text("color"), STDOUT_FILENO);
  how.width = TextWidth(STDOUT_FILENO);
  how.report_path = file;
  how.verbose = options.Flag("verbose");
  const std::string text = writer->write(*report, how);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return absl::UnavailableError("standard output could not be written");
  }
  return 0;
}

}  // namespace attntrace
