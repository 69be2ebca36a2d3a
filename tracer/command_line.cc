#include "tracer/command_line.h"

#include <algorithm>

#include "tracer/options.h"

namespace attntrace {
namespace {

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

CommandLine SplitCommandLine(const std::vector<std::string>& words, const std::vector<absl::string_view>& commands) {
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
    } else if (line.command.empty() && std::find(commands.begin(), commands.end(), word) != commands.end()) {
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

}  // namespace attntrace
