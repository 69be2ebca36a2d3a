// The commands: what each is called, does, and how a command line is divided among them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace attntrace {

struct CommandLine {
  std::string command;                 // name of a command; empty where only global options were given
  std::vector<std::string> arguments;  // for attntrace itself
  std::vector<std::string> program;    // of `run`: the program and its arguments
};

struct Command {
  absl::string_view name;
  absl::string_view usage;    // behind "attntrace "
  absl::string_view summary;  // one line
  // Returns the exit code. `line.arguments` has no command name in it.
  absl::StatusOr<int> (*run)(const CommandLine& line);
};

// The one list, in the order of help.
std::span<const Command> AllCommands();
const Command* FindCommand(absl::string_view name);

// Everything after the first `--` is the program. Without one, the program begins at the first word that is neither an option,
// an option's value nor a command's name. Pure: looks at nothing but `words` (without argv[0]).
CommandLine SplitCommandLine(const std::vector<std::string>& words);

std::string CommandOverview();  // what `attntrace --help` prints

// One file each in tracer/commands/.
absl::StatusOr<int> RunCommand(const CommandLine& line);
absl::StatusOr<int> ReportCommand(const CommandLine& line);
absl::StatusOr<int> DumpCommand(const CommandLine& line);
absl::StatusOr<int> ExplainCommand(const CommandLine& line);
absl::StatusOr<int> RecoverCommand(const CommandLine& line);
absl::StatusOr<int> DoctorCommand(const CommandLine& line);

}  // namespace attntrace
