#include "tracer/reference.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/free_memory.h"
#include "report/reference/findings.h"
#include "report/reference/plan.h"
#include "report/text_units.h"
#include "tracer/environment.h"
#include "tracer/install_paths.h"
#include "tracer/process_info.h"
#include "tracer/reference_process.h"
#include "tracer/spool/names.h"

namespace attntrace {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kRepeatMs = 100;           // per run, for medians
constexpr int64_t kSmall = int64_t{1} << 20;  // calls below this have little to tell apart
constexpr uint64_t kNoLimit = ~uint64_t{0};

// A fact of the process that made the calls.
std::string Fact(const Report& report, uint32_t process, const std::string& key) {
  if (process < static_cast<uint32_t>(report.processes_size())) {
    const auto& own = report.processes(static_cast<int>(process)).settings();
    if (const auto found = own.find(key); found != own.end()) return found->second;
  }
  const auto& shared = report.environment().settings();
  const auto found = shared.find(key);
  return found == shared.end() ? "" : found->second;
}

std::string Torch(const Report& report, uint32_t process) {
  if (process < static_cast<uint32_t>(report.processes_size())) {
    const auto& own = report.processes(static_cast<int>(process)).settings();
    if (const auto found = own.find("torch"); found != own.end()) return found->second;
  }
  return report.environment().torch();
}

// Folder of the agent for a PyTorch version that has a reference; empty where there is none.
std::string ReferenceFolder(const std::string& version) {
  const std::string plain = version.substr(0, version.find('+'));
  const fs::path agents = FindInstallation().agent_directory;
  std::error_code error;
  for (const char* suffix : {"", names::kOldAbiSuffix}) {
    const fs::path folder = agents / absl::StrCat(names::kAgentFolderPrefix, plain, suffix);
    if (!plain.empty() && fs::exists(folder / names::kReferenceProgram, error)) return folder.string();
  }
  return "";
}

ChildEnvironment EnvironmentFor(const Report& report, uint32_t process) {
  ChildEnvironment environment = ChildEnvironment::OfThisProcess();
  environment.Unset(names::kSpoolDirectory);  // not traced, whatever this launcher itself runs under
  const std::string folder = fs::path(Fact(report, process, "torch.library")).parent_path().string();
  const std::string before = environment.Get("LD_LIBRARY_PATH");
  environment.Set("LD_LIBRARY_PATH", before.empty() ? folder : absl::StrCat(folder, ":", before));
  if (const std::string threads = Fact(report, process, "threads.intraop"); !threads.empty())
    environment.Set("OMP_NUM_THREADS", threads);
  // Threads that spin at barriers make times on a busy machine twenty times too long.
  if (environment.Get("OMP_WAIT_POLICY").empty()) environment.Set("OMP_WAIT_POLICY", "PASSIVE");
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    if (const std::string value = Fact(report, process, absl::StrCat("env.", name)); !value.empty())
      environment.Set(name, value);
  }
  return environment;
}

// The processes that answer for one traced process: the program for PyTorch's own and our kernels, Python for flex_attention.
class Answerers {
 public:
  explicit Answerers(const Report& report) : report_(report) {}

  // Null, and why, where there is none.
  ReferenceProcess* For(const ReferenceCase& one, const std::string& path, std::string* why) {
    const bool python = absl::StartsWith(path, "flex-");
    // CUDA must be in a process before PyTorch looks for it the first time, so the CPU's calls have one of their own.
    auto& known = processes_[{one.process, python, one.call.device != "cpu"}];
    if (known != nullptr) return known.get();
    const std::string version = Torch(report_, one.process), folder = ReferenceFolder(version);
    if (folder.empty()) {
      *why = absl::StrCat("no ", names::kReferenceProgram, " for PyTorch ", version.empty() ? "of this report" : version,
                          " is installed here");
      return nullptr;
    }
    std::error_code error;
    if (const std::string library = Fact(report_, one.process, "torch.library"); !fs::exists(library, error)) {
      *why = absl::StrCat("PyTorch is not here: ", library.empty() ? "the report does not say where it was" : library);
      return nullptr;
    }
    ChildEnvironment environment = EnvironmentFor(report_, one.process);
    std::vector<std::string> command = {(fs::path(folder) / names::kReferenceProgram).string()};
    if (python) {
      const std::string interpreter = Fact(report_, one.process, "python.executable");
      if (!fs::exists(interpreter, error)) {
        *why = "the program's Python is not here";
        return nullptr;
      }
      command = {interpreter, (fs::path(folder) / names::kFlexReference).string()};
      environment.Set("LD_PRELOAD", (fs::path(folder) / names::kReferenceMemory).string());
    }
    known = std::make_unique<ReferenceProcess>(command, environment.entries());
    return known.get();
  }

 private:
  const Report& report_;
  std::map<std::tuple<uint32_t, bool, bool>, std::unique_ptr<ReferenceProcess>> processes_;
};

class Progress {
 public:
  Progress(bool on, size_t cases) : on_(on), cases_(cases) {}
  ~Progress() {
    if (on_ && shown_) std::fputs("\r\033[K", stderr);
  }
  void Show(size_t at, const ReferenceCase& one, const reference::Step& step) {
    if (!on_) return;
    constexpr size_t kCells = 20;
    const size_t full = cases_ == 0 ? 0 : kCells * at / cases_;
    std::fprintf(stderr, "\r\033[Kattntrace: reference runs [%s%s] %zu/%zu  %s %s", std::string(full, '=').c_str(),
                 std::string(kCells - full, ' ').c_str(), at + 1, cases_, step.request.path.c_str(),
                 FormatShape(one.call.q.sizes).c_str());
    std::fflush(stderr);
    shown_ = true;
  }

 private:
  const bool on_;
  const size_t cases_;
  bool shown_ = false;
};

reference::Response NotRun(const char* status, std::string words) {
  reference::Response response;
  response.status = status;
  response.words = std::move(words);
  return response;
}

class Session {
 public:
  Session(const ReferenceLimits& limits, Report* report)
      : limits_(limits),
        report_(report),
        answerers_(*report),
        deadline_(limits.seconds > 0 ? MonotonicNs() + static_cast<uint64_t>(limits.seconds) * kSecond : kNoLimit) {}

  std::string Run(std::vector<ReferenceCase> cases) {
    // Compiling takes long: what needs it waits until the rest is known.
    std::stable_partition(cases.begin(), cases.end(), [](const ReferenceCase& one) { return !one.flex; });
    Progress progress(limits_.progress, cases.size());
    std::string why;
    for (size_t at = 0; at < cases.size(); ++at) {
      std::vector<reference::Done> done;
      while (const auto step = NextStep(cases[at], done)) {
        progress.Show(at, cases[at], *step);
        reference::Response response = Answer(cases[at], *step, &why);
        if (!why.empty() && report_->reference_runs().empty() && done.empty()) return why;
        const bool skipped = response.status == "skipped";
        done.push_back({*step, std::move(response)});
        if (skipped) break;  // the rest would be skipped for the same reason
      }
      for (const reference::Done& one : done) *report_->add_reference_runs() = MakeRun(cases[at].variants, one);
    }
    return "";
  }

 private:
  reference::Response Answer(const ReferenceCase& one, const reference::Step& step, std::string* why) {
    if (MonotonicNs() >= deadline_) return NotRun("skipped", TimeIsUp());
    if (std::string words = TooLarge(one, step); !words.empty()) return NotRun("skipped", words);
    why->clear();
    ReferenceProcess* const process = answerers_.For(one, step.request.path, why);
    if (process == nullptr) return NotRun("error", *why);
    reference::Request request = step.request;
    request.id = ++asked_;
    request.limit_ms = one.observed_bytes < kSmall ? kRepeatMs / 5 : kRepeatMs;
    absl::StatusOr<reference::Response> response = process->Ask(request, deadline_);
    if (response.ok()) return *response;
    if (absl::IsDeadlineExceeded(response.status())) return NotRun("skipped", TimeIsUp());
    return NotRun("error", std::string(response.status().message()));
  }

  std::string TimeIsUp() const { return absl::StrCat("the ", limits_.seconds, " s of --reference-budget were used up"); }

  // Only the path observed is known to be large, and only main memory is asked: a GPU's own allocator refuses by itself.
  std::string TooLarge(const ReferenceCase& one, const reference::Step& step) const {
    if (step.purpose != "observed" || one.call.device != "cpu") return "";
    const int64_t free = reference::FreeMainMemory() / 100 * limits_.memory_percent;
    if (one.observed_bytes <= free) return "";
    return absl::StrCat("it needs ", FormatBytes(one.observed_bytes), " and ", FormatBytes(free), " may be used");
  }

  const ReferenceLimits limits_;
  Report* const report_;
  Answerers answerers_;
  const uint64_t deadline_;
  uint64_t asked_ = 0;
};

}  // namespace

ReferenceLimits LimitsOf(const OptionValues& options) {
  return {.seconds = options.Number("reference-budget"),
          .memory_percent = options.Number("reference-memory"),
          .progress = !options.Flag("quiet") && isatty(STDERR_FILENO) != 0};
}

std::string RunReferences(const ReferenceLimits& limits, Report* report) {
  report->clear_reference_runs();
  std::vector<ReferenceCase> cases = PlanReference(*report);
  std::string why;
  if (!cases.empty()) why = Session(limits, report).Run(std::move(cases));
  ApplyReference(report);
  const auto failed = [](const ReferenceRun& run) { return run.status() == "error"; };
  const auto& runs = report->reference_runs();
  if (why.empty() && !runs.empty() && std::all_of(runs.begin(), runs.end(), failed)) why = runs[0].words();
  return why;
}

}  // namespace attntrace
