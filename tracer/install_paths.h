// Where the injected libraries of this installation are.
#pragma once

#include <string>
#include <vector>

namespace attntrace {

struct InstallPaths {
  std::string executable;       // this program
  std::string agent_directory;  // one folder per PyTorch version; empty where there is none
  std::string preload;          // empty where it is missing
};

// Beside the executable (lib/attntrace in a build tree, ../lib/attntrace when installed); ATTNTRACE_AGENT_DIR comes first.
InstallPaths FindInstallation();

// Folder names below `agent_directory` that hold an agent, sorted: "torch-2.11.0".
std::vector<std::string> InstalledAgents(const std::string& agent_directory);

}  // namespace attntrace
