#include "tracer/command.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "tracer/options.h"

namespace attntrace {
namespace {

constexpr Command kCommands[] = {
    {"run", "[run] [options] -- COMMAND...", "trace a program, print the summary, write the report", RunCommand},
    {"report", "report FILE [--format FORMAT]", "show a report", ReportCommand},
    {"explain", "explain [RULE]", "what a finding means, its cause and its fixes", ExplainCommand},
    {"recover", "recover DIR", "make the report when the launcher died too", RecoverCommand},
    {"doctor", "doctor [--python PY]", "what works here, and what stands in the way", DoctorCommand},
    {"dump", "dump FILE", "a spool or a report as plain text, one record a line", DumpCommand},
};

}  // namespace

std::span<const Command> AllCommands() { return kCommands; }

const Command* FindCommand(absl::string_view name) {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::vector<absl::string_view> CommandNames() {
  std::vector<absl::string_view> names;
  for (const Command& command : kCommands) names.push_back(command.name);
  return names;
}

std::string CommandOverview() {
  std::string text = "attntrace: which attention really ran, who called it, and what it cost\n\n";
  for (const Command& command : kCommands) {
    char row[160];
    std::snprintf(row, sizeof row, "  attntrace %-31s %s\n", std::string(command.usage).c_str(),
                  std::string(command.summary).c_str());
    text += row;
  }
  return absl::StrCat(text, "\nattntrace COMMAND --help tells more of one, attntrace --version the version.\n\n", OptionHelp(),
                      "\nExit codes: of a traced program, its own (or its signal); 127 it was not found, 126 it could not be "
                      "executed;\n2 wrong usage or unusable input; 1 anything else that failed.\n");
}

}  // namespace attntrace
