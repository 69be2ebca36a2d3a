#include "absl/strings/str_cat.h"
#include "report/writers/formats.h"

namespace attntrace {

std::string WriteText(const Report& report, const WriterOptions& options) {
  return absl::StrCat(SummaryLine(report, options.report_path), "\n");
}

}  // namespace attntrace
