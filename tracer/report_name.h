// How a report file is called: attntrace-<script>.<pid>[.rank<N>].attn, or what -o asks for.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attntrace {

struct NameFacts {
  std::string host;
  int pid = 0;    // of the launcher: known before the program starts
  int rank = -1;  // of the launcher's own environment, -1 where it has none
};

// Facts of this process. The rank is that of torchrun, or of srun or mpirun where they started the launcher itself.
NameFacts CurrentNameFacts();

// What a command line is "about": the first script train.py as "train", the module of -m, else the program's own name.
std::string ProgramTitle(const std::vector<std::string>& command);

// attntrace-<title>.<pid>[.rank<N>].attn
std::string StandardReportName(const std::vector<std::string>& command, const NameFacts& facts);

// %h %p %r %% replaced; %r is 0 where there is no rank. InvalidArgument for any other letter.
absl::StatusOr<std::string> ExpandPattern(absl::string_view pattern, const NameFacts& facts);

// The path that a run writes: `pattern` expanded, the standard name in it where it is a folder, the standard name in the
// current directory where it is empty.
absl::StatusOr<std::string> ReportPath(absl::string_view pattern, const std::vector<std::string>& command,
                                       const NameFacts& facts);

// OK: can be written. AlreadyExists: there is something that must not be overwritten. Unavailable: cannot be written now; the
// run is still worth doing.
absl::Status CheckReportPath(const std::string& path, bool force);

// <path without .attn>.attntrace.d
std::string SpoolFolderFor(const std::string& report_path);

}  // namespace attntrace
