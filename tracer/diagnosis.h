// What `attntrace doctor` finds out, one line a check. A check that others depend on is a function here; doctor.cc runs them.
#pragma once

#include <string>
#include <vector>

#include "tracer/environment.h"
#include "tracer/install_paths.h"

namespace attntrace {

enum class Health { kOk, kWarn, kFail };

struct Diagnosis {
  Health health;
  std::string what;  // "PyTorch 2.11.0+cpu in /..."
  std::string next;  // what to do about it, empty where nothing is to be done
};

struct PythonFacts {
  std::string executable;     // sys.executable
  std::string torch_version;  // with its local part; empty: no PyTorch
  std::string torch_folder;
  bool old_abi = false;
  std::string cuda;    // CUDA version that PyTorch was built for, empty for a CPU build
  std::string reason;  // why there is no PyTorch, one line
};

// Asks `python`. `environment` is this process's, without ours in it.
PythonFacts AskPython(const std::string& python, const ChildEnvironment& environment);

// Folder of the agent for this PyTorch: torch-2.11.0, torch-2.6.0-oldabi.
std::string AgentKey(const PythonFacts& python);

std::vector<Diagnosis> CheckInstallation(const InstallPaths& paths);
Diagnosis CheckPyTorch(const std::string& asked, const PythonFacts& python);
Diagnosis CheckAgent(const InstallPaths& paths, const PythonFacts& python);
// Traces a program of one attention call, by this very executable, and reads its report back.
Diagnosis CheckTracing(const InstallPaths& paths, const PythonFacts& python, const ChildEnvironment& environment);
Diagnosis CheckCupti(const PythonFacts& python);
// Variables of other tools, and of ours left set by hand.
std::vector<Diagnosis> CheckEnvironment(const ChildEnvironment& environment);
std::vector<Diagnosis> CheckLeftovers();

}  // namespace attntrace
