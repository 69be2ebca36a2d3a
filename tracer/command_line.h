// How a command line is divided: attntrace's own arguments, the command, the program to trace.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace attntrace {

struct CommandLine {
  std::string command;                 // name of a command; empty where only global options were given
  std::vector<std::string> arguments;  // for attntrace itself
  std::vector<std::string> program;    // of `run`: the program and its arguments
};

// Everything after the first `--` is the program. Without one, the program begins at the first word that is neither an option,
// an option's value nor one of `commands`. Pure: looks at nothing but `words` (without argv[0]).
CommandLine SplitCommandLine(const std::vector<std::string>& words, const std::vector<absl::string_view>& commands);

}  // namespace attntrace
