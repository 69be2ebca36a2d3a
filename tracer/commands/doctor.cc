// attntrace doctor [--python PY]
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "tracer/arguments.h"
#include "tracer/command.h"
#include "tracer/diagnosis.h"
#include "tracer/outcome.h"
#include "tracer/spool/names.h"
#include "tracer/terminal.h"

namespace attntrace {
namespace {

void Print(const Diagnosis& line, bool color) {
  struct Look {
    const char *word, *color;
  };
  const Look look = line.health == Health::kOk     ? Look{"ok  ", "\033[32m"}
                    : line.health == Health::kWarn ? Look{"warn", "\033[33m"}
                                                   : Look{"FAIL", "\033[31m"};
  std::printf("%s%s%s  %s\n", color ? look.color : "", look.word, color ? "\033[0m" : "", line.what.c_str());
  if (!line.next.empty()) std::printf("      next: %s\n", line.next.c_str());
  std::fflush(stdout);
}

// What a traced mini run must not inherit, so that it is a run of its own.
ChildEnvironment Clean(ChildEnvironment environment) {
  for (const char* name : {names::kSpoolDirectory, names::kOptions}) environment.Unset(name);
  return environment;
}

}  // namespace

absl::StatusOr<int> DoctorCommand(const CommandLine& line) {
  OptionValues options;
  if (absl::Status status = SetFromEnvironment(options); !status.ok()) return status;
  std::string python = "python3";
  absl::Status failure;
  CLI::App app("Tells what works here and what stands in the way; exit code 0 when tracing works, else 1.", "attntrace doctor");
  app.add_option("--python", python, "the Python whose programs you trace (standard: python3 on PATH)")->type_name("PY");
  AddOptions(app, {"color"}, &options, &failure);
  const absl::StatusOr<bool> go_on = ParseArguments(app, line.arguments, &failure);
  if (!go_on.ok()) return go_on.status();
  if (!*go_on) return 0;

  const bool color = UseColor(options.Text("color"), STDOUT_FILENO);
  bool works = true;
  const auto tell = [&](const Diagnosis& one) {
    works &= one.health != Health::kFail;
    Print(one, color);
    return one.health != Health::kFail;
  };
  const ChildEnvironment environment = ChildEnvironment::OfThisProcess();
  const ChildEnvironment clean = Clean(environment);
  const InstallPaths paths = FindInstallation();
  std::printf("attntrace %s, %s\n", ATTNTRACE_VERSION, paths.executable.c_str());
  for (const Diagnosis& one : CheckInstallation(paths)) tell(one);
  const PythonFacts facts = AskPython(python, clean);
  if (tell(CheckPyTorch(python, facts))) {
    const bool agent = tell(CheckAgent(paths, facts));
    tell(CheckCupti(facts));
    if (agent && works) tell(CheckTracing(paths, facts, clean));
  }
  for (const Diagnosis& one : CheckEnvironment(environment)) tell(one);
  for (const Diagnosis& one : CheckLeftovers()) tell(one);
  return works ? 0 : kExitFailed;
}

}  // namespace attntrace
