// The parts of the text report, each in a file of its name. All append whole lines.
#pragma once

#include <string>

#include "report/report.pb.h"
#include "report/writers/layout.h"
#include "report/writers/source_lines.h"
#include "report/writers/writers.h"

namespace attntrace {

// A table of phases and peaks cannot be narrower; a terminal that is breaks the lines itself.
inline constexpr int kNarrowest = 80;

struct TextContext {
  const Report& report;
  const WriterOptions& options;
  Paint paint;
  SourceLines* sources;
  int width() const { return options.width < kNarrowest ? kNarrowest : options.width; }
};

// text_header.cc: the verdict and what it was reached on.
void AppendHeader(const TextContext& context, std::string* out);
// text_finding.cc: one block a finding. Blind spots have no block: they are what was not seen.
void AppendFindings(const TextContext& context, std::string* out);
// text_path.cc: the "where" lines of a finding's block, and the "built" lines where its evidence says what built its modules.
void AppendWhere(const TextContext& context, const Finding& finding, std::string* out);
void AppendBuilt(const TextContext& context, const Finding& finding, std::string* out);
// text_table.cc: every call site, its phases side by side.
void AppendCallSites(const TextContext& context, std::string* out);
// text_kernels.cc: what one call launches on a device, and what is in use there that is not PyTorch's.
void AppendKernels(const TextContext& context, std::string* out);
void AppendDeviceMemory(const TextContext& context, std::string* out);
// text_tail.cc: processes, what was not seen, where the report is, what to do next.
void AppendProcesses(const TextContext& context, std::string* out);
void AppendNotSeen(const TextContext& context, std::string* out);
void AppendNext(const TextContext& context, std::string* out);

// "  label   text", wrapped, further lines below the text.
void AppendLabelled(const TextContext& context, absl::string_view label, absl::string_view text, std::string* out);
inline constexpr int kTextIndent = 10;

inline bool IsBlindSpotFinding(const Finding& finding) { return finding.rule() == "blind-spot"; }

}  // namespace attntrace
