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

// Whether the value of this option word is the next word.
bool TakesNextWord(const std::string& word) {
  if (word.size() > 2 && word[1] == '-') {
    const OptionSpec* spec = FindOption(absl::string_view(word).substr(2));
    return spec != nullptr && spec->kind != OptionKind::kFlag;
  }
  for (size_t i = 1; i < word.size(); ++i) {
    for (const OptionSpec& spec : OptionTable()) {
      if (spec.letter == word[i] && spec.kind != OptionKind::kFlag) return i + 1 == word.size();  // else -oFILE
    }
  }
  return false;
}

}  // namespace

std::span<const Command> AllCommands() { return kCommands; }

const Command* FindCommand(absl::string_view name) {
  for (const Command& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

CommandLine SplitCommandLine(const std::vector<std::string>& words) {
  CommandLine line;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      line.program.assign(words.begin() + i + 1, words.end());
      if (line.command.empty()) line.command = "run";
      return line;
    }
    if (word.size() > 1 && word[0] == '-') {
      line.arguments.push_back(word);
      if (TakesNextWord(word) && i + 1 < words.size() && words[i + 1] != "--") line.arguments.push_back(words[++i]);
    } else if (line.command.empty() && FindCommand(word) != nullptr) {
      line.command = word;
      if (word == "run") continue;
      line.arguments.insert(line.arguments.end(), words.begin() + i + 1, words.end());
      return line;
    } else {
      line.command = "run";
      line.program.assign(words.begin() + i, words.end());
      return line;
    }
  }
  return line;
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
