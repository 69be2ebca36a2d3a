// The commands: what each is called and does.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracer/command_line.h"

namespace attntrace {

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
std::vector<absl::string_view> CommandNames();

std::string CommandOverview();  // what `attntrace --help` prints

// One file each in tracer/commands/.
absl::StatusOr<int> RunCommand(const CommandLine& line);
absl::StatusOr<int> ReportCommand(const CommandLine& line);
absl::StatusOr<int> DumpCommand(const CommandLine& line);
absl::StatusOr<int> ExplainCommand(const CommandLine& line);
absl::StatusOr<int> RecoverCommand(const CommandLine& line);
absl::StatusOr<int> DoctorCommand(const CommandLine& line);

}  // namespace attntrace
