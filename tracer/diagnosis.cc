#include "tracer/diagnosis.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/file.h"
#include "tracer/spool/names.h"
#include "tracer/spool_folder.h"
#include "tracer/subprocess.h"

namespace attntrace {
namespace {

namespace fs = std::filesystem;

constexpr int kTimeoutS = 120;  // a first import of PyTorch from a network drive is slow

constexpr char kAsk[] = R"(
import os, sys
print(sys.executable)
import torch
print(torch.__version__, os.path.dirname(torch.__file__), int(torch._C._GLIBCXX_USE_CXX11_ABI), torch.version.cuda or "", sep="\n")
)";

constexpr char kOneCall[] = R"(
import torch
q = torch.zeros(1, 2, 8, 16)
torch.nn.functional.scaled_dot_product_attention(q, q, q)
)";

std::string LastLine(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipWhitespace());
  return lines.empty() ? "" : lines.back();
}

Diagnosis Ok(std::string what) { return {Health::kOk, std::move(what), ""}; }
Diagnosis Warn(std::string what, std::string next) { return {Health::kWarn, std::move(what), std::move(next)}; }
Diagnosis Fail(std::string what, std::string next) { return {Health::kFail, std::move(what), std::move(next)}; }

Diagnosis ReadBack(const std::string& path) {
  const absl::StatusOr<Report> report = ReadReportFile(path);
  if (!report.ok()) return Fail(absl::StrCat("tracing: ", std::string(report.status().message())), "report this");
  if (report->totals().forward_calls() == 1) {
    return Ok("tracing: a program with one attention call was traced, and the call was seen");
  }
  std::string reason = report->processes_size() == 0 ? "no process loaded PyTorch" : report->processes(0).tracing();
  if (report->blind_spots_size() > 0) absl::StrAppend(&reason, "; ", report->blind_spots(0).text());
  return Fail(absl::StrCat("tracing: of one attention call ", report->totals().forward_calls(), " were seen: ", reason),
              "see the lines above; if they are all ok, report this");
}

}  // namespace

PythonFacts AskPython(const std::string& python, const ChildEnvironment& environment) {
  PythonFacts facts;
  const absl::StatusOr<Captured> answer = RunCaptured({python, "-c", kAsk}, environment.entries(), kTimeoutS);
  if (!answer.ok()) {
    facts.reason = std::string(answer.status().message());
    return facts;
  }
  const std::vector<std::string> lines = absl::StrSplit(answer->out, '\n');
  facts.executable = lines[0];
  if (answer->exit_code != 0 || lines.size() < 5) {
    facts.reason = LastLine(answer->err);
    return facts;
  }
  facts.torch_version = lines[1];
  facts.torch_folder = lines[2];
  facts.old_abi = lines[3] == "0";
  facts.cuda = lines[4];
  return facts;
}

std::string AgentKey(const PythonFacts& python) {
  const std::string plain = python.torch_version.substr(0, python.torch_version.find('+'));
  return absl::StrCat(names::kAgentFolderPrefix, plain, python.old_abi ? names::kOldAbiSuffix : "");
}

std::vector<Diagnosis> CheckInstallation(const InstallPaths& paths) {
  std::vector<Diagnosis> found;
  if (paths.preload.empty()) {
    found.push_back(Fail(absl::StrCat("preload: ", names::kPreloadLibrary, " is not beside ", paths.executable),
                         absl::StrCat("install attntrace as a whole, or set ", names::kAgentDirectory)));
  } else {
    found.push_back(Ok(absl::StrCat("preload: ", paths.preload)));
  }
  const std::vector<std::string> agents = InstalledAgents(paths.agent_directory);
  if (agents.empty()) {
    found.push_back(Fail("agents: none is installed", "build one for your PyTorch: make build PYTHON=/path/to/python"));
  } else {
    found.push_back(Ok(absl::StrCat("agents: ", absl::StrJoin(agents, ", "), " in ", paths.agent_directory)));
  }
  return found;
}

Diagnosis CheckPyTorch(const std::string& asked, const PythonFacts& python) {
  if (python.torch_version.empty()) {
    return Fail(absl::StrCat("PyTorch: ", asked, ": ", python.reason),
                "name the Python that has it: attntrace doctor --python PY");
  }
  return Ok(absl::StrCat("PyTorch: ", python.torch_version, python.old_abi ? ", old C++ ABI" : "", " in ", python.torch_folder,
                         " (", python.executable, ")"));
}

Diagnosis CheckAgent(const InstallPaths& paths, const PythonFacts& python) {
  const std::string key = AgentKey(python);
  std::error_code error;
  if (fs::exists(fs::path(paths.agent_directory) / key / names::kAgentLibrary, error)) {
    return Ok(absl::StrCat("agent: ", key, " fits this PyTorch"));
  }
  return Fail(absl::StrCat("agent: none for this PyTorch (", key, ")"),
              absl::StrCat("build one: make build PYTHON=", python.executable));
}

Diagnosis CheckTracing(const InstallPaths& paths, const PythonFacts& python, const ChildEnvironment& environment) {
  std::error_code error;
  std::string folder = (fs::temp_directory_path(error) / "attntrace-doctor-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return Fail(absl::StrCat("tracing: cannot make ", folder), "set TMPDIR to a writable folder");
  const std::string report = folder + "/doctor.attn";
  const absl::StatusOr<Captured> run = RunCaptured(
      {paths.executable, "-q", "-o", report, "--", python.executable, "-c", kOneCall}, environment.entries(), kTimeoutS);
  Diagnosis result = Ok("");
  if (!run.ok()) {
    result = Fail(absl::StrCat("tracing: ", std::string(run.status().message())),
                  "try it by hand: attntrace -v -- python -c 'import torch'");
  } else if (run->exit_code != 0) {
    result = Fail(absl::StrCat("tracing: the traced program failed: ", LastLine(run->err)),
                  "does it fail untraced too? If not, report this");
  } else {
    result = ReadBack(report);
    if (result.health != Health::kOk && !run->err.empty()) {
      const std::vector<std::string> lines = absl::StrSplit(run->err, '\n');
      if (!absl::StartsWith(lines[0], "SUMMARY")) absl::StrAppend(&result.what, " (", lines[0], ")");
    }
  }
  fs::remove_all(folder, error);  // made by mkdtemp just now: nothing else is in it
  return result;
}

Diagnosis CheckCupti(const PythonFacts& python) {
  if (python.cuda.empty()) return Ok("CUPTI: not needed, this PyTorch has no CUDA");
  std::error_code error;
  // As PyTorch looks for it: the wheels beside it first.
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(python.torch_folder).parent_path() / "nvidia", error)) {
    folders.push_back(entry.path() / "lib");
  }
  for (const char* folder : {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu",
                             "/usr/lib/aarch64-linux-gnu"}) {
    folders.emplace_back(folder);
  }
  const std::string wanted = absl::StrCat("libcupti.so.", python.cuda.substr(0, python.cuda.find('.')));
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / wanted, error)) return Ok(absl::StrCat("CUPTI: ", (folder / wanted).string()));
  }
  return Warn(
      absl::StrCat("CUPTI: no ", wanted, " (this PyTorch has CUDA ", python.cuda, "): kernels on the GPU will have no names"),
      "install the nvidia-cuda-cupti package of your CUDA version");
}

std::vector<Diagnosis> CheckEnvironment(const ChildEnvironment& environment) {
  std::vector<Diagnosis> found;
  for (const std::string& entry : environment.entries()) {
    const std::string name = entry.substr(0, entry.find('='));
    const std::string value = entry.substr(std::min(entry.size(), name.size() + 1));
    if (value.empty()) continue;
    if (name == "CUDA_INJECTION64_PATH" || name == "NVTX_INJECTION64_PATH" || absl::StartsWith(name, "NSYS_") ||
        absl::StartsWith(name, "QUADD_")) {
      found.push_back(
          Warn(absl::StrCat("environment: ", entry, ": another profiler may hold CUPTI"), absl::StrCat("unset ", name)));
    } else if (name == "LD_PRELOAD" && ListsOurPreload(value)) {
      found.push_back(Warn(absl::StrCat("environment: ", entry, ": every program is traced already"), "unset LD_PRELOAD"));
    } else if (name == "LD_PRELOAD") {
      found.push_back(
          Warn(absl::StrCat("environment: ", entry, " is kept and loaded behind ours"), "unset it if tracing fails"));
    } else if (name == "LD_AUDIT") {
      found.push_back(
          Warn(absl::StrCat("environment: ", entry, " watches every library that is loaded"), "unset it if tracing fails"));
    } else if (name == names::kSpoolDirectory) {
      found.push_back(
          Warn(absl::StrCat("environment: ", entry, ": programs started here join that run"), absl::StrCat("unset ", name)));
    } else if (absl::StartsWith(name, "ATTNTRACE_")) {
      found.push_back(Ok(absl::StrCat("environment: ", entry)));
    }
  }
  if (found.empty()) found.push_back(Ok("environment: no other tool in the way"));
  return found;
}

std::vector<Diagnosis> CheckLeftovers() {
  std::vector<Diagnosis> found;
  std::error_code error;
  std::vector<std::string> places = {"."};
  if (!fs::equivalent(".", TemporaryFolder(), error)) places.push_back(TemporaryFolder());
  for (const std::string& place : places) {
    for (const std::string& folder : FindLeftovers(place)) {
      found.push_back(Warn(absl::StrCat("left over: ", folder, " of a run that left no report"),
                           absl::StrCat("attntrace recover ", folder)));
    }
  }
  return found;
}

}  // namespace attntrace
