// The settings of a run: one table that the command line, ATTNTRACE_OPTIONS=key=value:key=value, `--help`, `help=1` and the
// documentation come from. The agent reads its own keys of the same variable inside the traced process.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace attntrace {

enum class OptionKind { kFlag, kText, kNumber, kChoice };
enum class OptionReader { kLauncher, kAgent, kBoth };

struct OptionSpec {
  absl::string_view key;  // in ATTNTRACE_OPTIONS; the command line says --key
  char letter;            // -o, or 0
  OptionKind kind;
  absl::string_view value;     // how help names the value; of a choice: "auto|always|never"
  absl::string_view standard;  // what holds where it is not given
  long minimum, maximum;       // of a number
  OptionReader reader;         // who acts on it
  absl::string_view help;
};

std::span<const OptionSpec> OptionTable();
const OptionSpec* FindOption(absl::string_view key);

// Values by key. Only what was set is stored; the rest is the table's standard.
class OptionValues {
 public:
  // InvalidArgument for an unknown key (the near ones are named) or a value that the table does not allow.
  absl::Status Set(absl::string_view key, absl::string_view value);
  // All of ATTNTRACE_OPTIONS. A backslash makes the next character plain; a flag may stand without a value.
  absl::Status SetAll(absl::string_view text);

  bool IsSet(absl::string_view key) const { return values_.count(std::string(key)) != 0; }
  std::string Text(absl::string_view key) const;
  bool Flag(absl::string_view key) const { return Text(key) == "1"; }
  long Number(absl::string_view key) const;

  // What the agent must be told: the set keys that it reads, as key=value:key=value.
  std::string ForAgent() const;
  const std::map<std::string, std::string>& set() const { return values_; }

 private:
  std::map<std::string, std::string> values_;
};

// The table as text, one key a line: what ATTNTRACE_OPTIONS=help=1 prints.
std::string OptionHelp();

}  // namespace attntrace
