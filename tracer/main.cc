// attntrace: the command outside. Parses, chooses the command, turns its result into an exit code.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tracer/command.h"
#include "tracer/outcome.h"

namespace {

int Main(const std::vector<std::string>& words) {
  using namespace attntrace;
  const CommandLine line = SplitCommandLine(words, CommandNames());
  if (line.command.empty()) {
    for (const std::string& word : line.arguments) {
      if (word == "--version") return std::puts("attntrace " ATTNTRACE_VERSION), 0;
      if (word == "--help" || word == "-h") return std::fputs(CommandOverview().c_str(), stdout), 0;
    }
    if (words.empty()) return std::fputs(CommandOverview().c_str(), stderr), kExitUsage;
  }
  const Command* command = FindCommand(line.command.empty() ? "run" : line.command);
  const absl::StatusOr<int> code = command->run(line);
  if (code.ok()) return *code;
  Say(std::string(code.status().message()));
  return ExitCodeOf(code.status());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    attntrace::Say(std::string("unexpected: ") + error.what() + "; please report it with the command line");
    return attntrace::kExitFailed;
  }
}
