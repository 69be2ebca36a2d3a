// The summary for people: verdict first, a block a finding, every call site, what was not seen, and the line for scripts.
#include "absl/strings/str_cat.h"
#include "report/writers/formats.h"
#include "report/writers/text_parts.h"

namespace attntrace {

std::string WriteText(const Report& report, const WriterOptions& options) {
  const uint64_t start = report.run().start_unix_ns();
  SourceLines sources(start == 0 ? 0 : start + report.run().duration_ns());
  const TextContext context{report, options, Paint(options.color), &sources};
  std::string out;
  AppendHeader(context, &out);
  AppendFindings(context, &out);
  AppendCallSites(context, &out);
  AppendKernels(context, &out);
  AppendDeviceMemory(context, &out);
  AppendProcesses(context, &out);
  AppendNotSeen(context, &out);
  AppendNext(context, &out);
  absl::StrAppend(&out, SummaryLine(report, options.report_path), "\n");
  return out;
}

}  // namespace attntrace
