#include "tracer/install_paths.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "absl/strings/match.h"
#include "tracer/spool/names.h"

namespace attntrace {

namespace fs = std::filesystem;

InstallPaths FindInstallation() {
  InstallPaths paths;
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  paths.executable = executable.string();
  std::vector<fs::path> folders;
  if (const char* given = std::getenv(names::kAgentDirectory); given != nullptr && *given != '\0') {
    folders.push_back(fs::absolute(given, error));
  }
  folders.push_back(executable.parent_path() / "lib" / "attntrace");
  folders.push_back(executable.parent_path().parent_path() / ATTNTRACE_INSTALL_LIBDIR / "attntrace");
  for (const fs::path& folder : folders) {
    if (paths.agent_directory.empty() && fs::is_directory(folder, error)) paths.agent_directory = folder.string();
    if (paths.preload.empty() && fs::exists(folder / names::kPreloadLibrary, error)) {
      paths.preload = (folder / names::kPreloadLibrary).string();
    }
  }
  return paths;
}

std::vector<std::string> InstalledAgents(const std::string& agent_directory) {
  std::vector<std::string> agents;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(agent_directory, error)) {
    const std::string name = entry.path().filename().string();
    if (absl::StartsWith(name, names::kAgentFolderPrefix) && fs::exists(entry.path() / names::kAgentLibrary, error)) {
      agents.push_back(name);
    }
  }
  std::sort(agents.begin(), agents.end());
  return agents;
}

}  // namespace attntrace
