// attntrace [run] [options] -- COMMAND...
#include <cstdio>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tracer/arguments.h"
#include "tracer/command.h"
#include "tracer/environment.h"
#include "tracer/finish.h"
#include "tracer/install_paths.h"
#include "tracer/launch.h"
#include "tracer/near_names.h"
#include "tracer/outcome.h"
#include "tracer/preload_link.h"
#include "tracer/process_info.h"
#include "tracer/report_name.h"
#include "tracer/run_record.h"
#include "tracer/spool/names.h"
#include "tracer/spool_folder.h"

namespace attntrace {
namespace {

// A run below another attntrace (torchrun --no-python attntrace -- ..., itself traced) writes into the outer one's folder.
bool JoinsOuterRun(const ChildEnvironment& environment) {
  const std::string folder = environment.Get(names::kSpoolDirectory);
  if (folder.empty()) return false;
  const absl::StatusOr<RunRecord> outer = ReadRunRecord(folder);
  return outer.ok() && LauncherRuns(*outer);
}

int ExecFailed(const CommandLine& line, int exec_errno) {
  const std::string& name = line.program[0];
  const std::vector<std::string> near =  // a path is no slip of the pen
      absl::StrContains(name, '/') ? std::vector<std::string>() : NearNames(name, CommandNames());
  const std::string meant = near.empty() ? "" : absl::StrCat("; for the command of attntrace: attntrace ", near.front());
  Say(absl::StrCat(ExecFailureText(name, exec_errno), meant));
  return ExecFailureCode(exec_errno);
}

// The variables that make a process traced. `preload` is what LD_PRELOAD gets.
void Prepare(ChildEnvironment& environment, const std::string& preload, const InstallPaths& paths, const std::string& folder,
             const OptionValues& options) {
  environment.Set("LD_PRELOAD", MergePreload(environment.Get("LD_PRELOAD"), preload));
  environment.Set(names::kSpoolDirectory, folder);
  environment.Set(names::kAgentDirectory, paths.agent_directory);
  if (const std::string told = options.ForAgent(); !told.empty()) {
    const std::string users = environment.Get(names::kOptions);
    environment.Set(names::kOptions, absl::StrCat(told, users.empty() ? "" : ":", users));  // the agent takes the first
  }
}

RunRecord NewRecord(const CommandLine& line, const NameFacts& facts, const std::string& report_path) {
  std::error_code error;
  RunRecord record;
  record.command = line.program;
  record.host = HostName();
  record.directory = std::filesystem::current_path(error).string();
  record.start_unix_ns = WallClockNs();
  record.launcher_pid = facts.pid;
  record.launcher_start_ticks = StartTicks(facts.pid);
  record.report = std::filesystem::absolute(report_path, error).lexically_normal().string();
  return record;
}

// How the launcher is to end: as the program did.
struct Result {
  int code = 0;
  bool signaled = false;  // then code is the signal
};

Result ResultOf(const ChildEnd& end, const OptionValues& options, bool findings) {
  const bool fails = !end.signaled && end.code == 0 && findings;
  return {.code = fails ? static_cast<int>(options.Number("error-exitcode")) : end.code, .signaled = end.signaled};
}

// Runs the program without us: what is left to do where nothing can be recorded.
absl::StatusOr<Result> RunUntraced(const CommandLine& line, const ChildEnvironment& environment, const std::string& why) {
  Say(absl::StrCat(why, "; the program runs untraced"));
  return Result{ExecFailed(line, ExecInPlace(line.program, environment.entries()))};
}

void MentionLeftovers(const std::string& report_path) {
  const std::vector<std::string> leftovers = FindLeftovers(std::filesystem::path(report_path).parent_path().string());
  if (leftovers.empty()) return;
  const std::string more =
      leftovers.size() > 1 ? absl::StrCat(" (and ", leftovers.size() - 1, " more; see attntrace doctor)") : "";
  Say(absl::StrCat("an earlier run left something to recover: attntrace recover ", leftovers.front(), more));
}

absl::StatusOr<Result> Trace(const CommandLine& line, const OptionValues& options) {
  ChildEnvironment environment = ChildEnvironment::OfThisProcess();
  const InstallPaths paths = FindInstallation();
  const PreloadLink preload(paths.preload);
  if (preload.path().empty()) {
    return RunUntraced(line, environment, absl::StrCat(preload.error(), "; see attntrace doctor"));
  }
  if (JoinsOuterRun(environment)) {
    if (!ListsOurPreload(environment.Get("LD_PRELOAD"))) {
      environment.Set("LD_PRELOAD", MergePreload(environment.Get("LD_PRELOAD"), preload.path()));
    }
    return Result{ExecFailed(line, ExecInPlace(line.program, environment.entries()))};
  }

  const NameFacts facts = CurrentNameFacts();
  const absl::StatusOr<std::string> report_path = ReportPath(options.Text("output"), line.program, facts);
  if (!report_path.ok()) return report_path.status();
  if (absl::Status status = CheckReportPath(*report_path, options.Flag("force")); absl::IsAlreadyExists(status)) {
    return status;
  } else if (!status.ok()) {
    Say(absl::StrCat(status.message(), "; the program runs, and the spools are kept for attntrace recover"));
  }
  const absl::StatusOr<std::string> folder = CreateSpoolFolder(SpoolFolderFor(*report_path));
  if (!folder.ok()) return RunUntraced(line, environment, std::string(folder.status().message()));
  RunRecord record = NewRecord(line, facts, *report_path);
  if (absl::Status status = WriteRunRecord(*folder, record); !status.ok()) {
    RemoveSpoolFolder(*folder);
    return RunUntraced(line, environment, std::string(status.message()));
  }
  if (!options.Flag("quiet")) MentionLeftovers(*report_path);
  Prepare(environment, preload.path(), paths, *folder, options);
  if (options.Flag("verbose")) {
    Say(absl::StrCat("spools in ", *folder));
    Say(absl::StrCat("LD_PRELOAD=", environment.Get("LD_PRELOAD")));
    Say(absl::StrCat("agents in ", paths.agent_directory, ": ", absl::StrJoin(InstalledAgents(paths.agent_directory), ", ")));
    for (const auto& [key, value] : options.set()) Say(absl::StrCat("option ", key, "=", value));
  }

  const absl::StatusOr<ChildEnd> end = RunChild(line.program, environment.entries());
  if (!end.ok() || end->exec_errno != 0) RemoveSpoolFolder(*folder);
  if (!end.ok()) return end.status();
  if (end->exec_errno != 0) return Result{ExecFailed(line, end->exec_errno)};

  record.ended = end->signaled ? "signal" : "exit";
  (end->signaled ? record.signal : record.exit_code) = end->code;
  record.duration_ns = end->duration_ns;
  record.kept = options.Flag("keep-spool");
  const absl::Status recorded = WriteRunRecord(*folder, record);  // on a full disk the first one must do

  FinishRequest request = {
      .folder = *folder, .report_path = *report_path, .facts = FactsOf(record), .force = options.Flag("force")};
  absl::StatusOr<Finished> finished = Finish(request, options);
  if (!finished.ok()) {
    request.unreadable = std::string(finished.status().message());
    Say(absl::StrCat(request.unreadable, "; the spools are kept in ", *folder));
    finished = Finish(request, options);
  } else if (finished->written && !finished->running && !record.kept) {
    RemoveSpoolFolder(*folder);
  }
  if (!finished.ok()) Say(finished.status().message());
  return ResultOf(*end, options, finished.ok() && finished->findings);
}

}  // namespace

absl::StatusOr<int> RunCommand(const CommandLine& line) {
  OptionValues options;
  if (absl::Status status = SetFromEnvironment(options); !status.ok()) return status;
  CLI::App app("Traces a program: runs it, prints what its attention did, and writes the report.", "attntrace run");
  app.footer("What stands after -- is the program and its arguments. Its exit status or signal is returned as it is.");
  absl::Status failure;
  AddOptions(app, {}, &options, &failure);
  const absl::StatusOr<bool> go_on = ParseArguments(app, line.arguments, &failure);
  if (!go_on.ok()) return go_on.status();
  if (!*go_on) return 0;
  if (options.Flag("help")) {
    std::fputs(OptionHelp().c_str(), stdout);
    return 0;
  }
  if (line.program.empty() || line.program[0].empty()) {
    return absl::InvalidArgumentError("no program to trace: attntrace [options] -- COMMAND...; see attntrace --help");
  }
  const absl::StatusOr<Result> result = Trace(line, options);
  if (!result.ok()) return result.status();
  if (result->signaled) DieBySignal(result->code);
  return result->code;
}

}  // namespace attntrace
