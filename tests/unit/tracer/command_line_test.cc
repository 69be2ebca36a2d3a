#include "tracer/command_line.h"

#include "tests/unit/catch.h"

namespace attntrace {
namespace {

using Words = std::vector<std::string>;

CommandLine Split(const Words& words) { return SplitCommandLine(words, {"run", "report", "dump"}); }

TEST_CASE("everything after -- is the program") {
  const CommandLine line = Split({"-q", "-o", "x.attn", "--", "python", "-m", "report", "--", "-q"});
  CHECK(line.command == "run");
  CHECK(line.arguments == Words{"-q", "-o", "x.attn"});
  CHECK(line.program == Words{"python", "-m", "report", "--", "-q"});
}

TEST_CASE("a program may be called as a command is, behind --") {
  const CommandLine line = Split({"--", "report", "x"});
  CHECK(line.command == "run");
  CHECK(line.program == Words{"report", "x"});
}

TEST_CASE("without -- the program begins at the first word that is nothing of ours") {
  const CommandLine line = Split({"-o", "report", "-qf", "--error-exitcode", "3", "python", "x.py", "-o", "y", "--", "z"});
  CHECK(line.command == "run");
  CHECK(line.arguments == Words{"-o", "report", "-qf", "--error-exitcode", "3"});
  CHECK(line.program == Words{"python", "x.py", "-o", "y", "--", "z"});
}

TEST_CASE("run may be written out") {
  const CommandLine line = Split({"run", "-v", "python", "x.py"});
  CHECK(line.command == "run");
  CHECK(line.arguments == Words{"-v"});
  CHECK(line.program == Words{"python", "x.py"});
  CHECK(Split({"run", "run"}).program == Words{"run"});
}

TEST_CASE("an option's value may stand in the same word") {
  CHECK(Split({"-ox.attn", "prog"}).program == Words{"prog"});
  CHECK(Split({"--output=x.attn", "prog"}).program == Words{"prog"});
  CHECK(Split({"-fo", "x.attn", "prog"}).program == Words{"prog"});
}

TEST_CASE("a command gets its own arguments, options in front of it included") {
  const CommandLine line = Split({"-v", "report", "x.attn", "--format", "json"});
  CHECK(line.command == "report");
  CHECK(line.arguments == Words{"-v", "x.attn", "--format", "json"});
  CHECK(line.program.empty());
}

TEST_CASE("a missing program is seen") {
  CHECK(Split({"--"}).program.empty());
  CHECK(Split({"--"}).command == "run");
  CHECK(Split({"-o", "--", "x"}).arguments == Words{"-o"});  // so that -o is told that its value is missing
  CHECK(Split({"--version"}).command.empty());
  CHECK(Split({}).command.empty());
}

}  // namespace
}  // namespace attntrace
