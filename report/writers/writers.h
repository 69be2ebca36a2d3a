// The forms a report is shown in: pure functions of the report, one file each, all listed in one table.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "report/report.pb.h"

namespace attntrace {

struct WriterOptions {
  bool color = false;
  int width = 100;          // columns of text; other formats do not look
  std::string report_path;  // where the report lies, for the last lines; empty where there is no file
  bool verbose = false;     // every row, every process, instead of the first ones
};

struct Writer {
  const char* name;  // of --format
  const char* help;
  std::string (*write)(const Report&, const WriterOptions&);
};

// In the order of the help; the first is the default.
absl::Span<const Writer> AllWriters();
// Null for an unknown name.
const Writer* FindWriter(absl::string_view name);

// The line for scripts, without a newline. Its keys and their order are for ever; new ones would come behind report=.
std::string SummaryLine(const Report& report, const std::string& report_path);

}  // namespace attntrace
