#include "tracer/spool_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "tracer/process_info.h"
#include "tracer/run_record.h"
#include "tracer/spool/names.h"

namespace attntrace {
namespace {

namespace fs = std::filesystem;

// Makes the first free one of x.attntrace.d, x.2.attntrace.d, ... and returns it, or an empty string with errno set.
std::string MakeFree(const std::string& path) {
  const std::string stem(absl::StripSuffix(path, names::kSpoolFolderSuffix));
  std::string name = path;
  for (int n = 2; mkdir(name.c_str(), 0700) != 0; ++n) {
    if (errno != EEXIST || n > 1000) return "";
    name = absl::StrCat(stem, ".", n, names::kSpoolFolderSuffix);
  }
  return name;
}

bool IsOurs(const std::string& name) {
  return absl::EndsWith(name, names::kSpoolSuffix) || absl::EndsWith(name, names::kUntracedSuffix) ||
         absl::EndsWith(name, names::kSaidSuffix) || name == names::kRunFile || name == absl::StrCat(names::kRunFile, ".new");
}

}  // namespace

std::string TemporaryFolder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

absl::StatusOr<std::string> CreateSpoolFolder(const std::string& path) {
  std::error_code ignored;
  std::string made = MakeFree(path);
  if (made.empty()) {
    const int error = errno;
    const fs::path root = TemporaryFolder();
    made = MakeFree((root / fs::path(path).filename()).string());
    if (made.empty()) {
      return absl::UnavailableError(absl::StrCat("cannot make ", path, ": ", std::strerror(error), "; nor one in ",
                                                 root.string(), ": ", std::strerror(errno)));
    }
  }
  const fs::path absolute = fs::absolute(made, ignored);
  return absolute.lexically_normal().string();
}

absl::StatusOr<SpoolFolder> ReadSpoolFolder(const std::string& path) {
  SpoolFolder folder;
  std::error_code error;
  fs::directory_iterator entries(path, error);
  if (error) return absl::NotFoundError(absl::StrCat(path, ": ", error.message()));
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (absl::EndsWith(name, names::kSpoolSuffix)) {
      folder.spools.push_back(entry.path().string());
      const std::vector<std::string> parts = absl::StrSplit(name, '-');
      TracedProcess process{};
      if (parts.size() >= 2 && absl::SimpleAtoi(parts[0], &process.pid) && absl::SimpleAtoi(parts[1], &process.start_ticks)) {
        folder.processes.push_back(process);
      }
    } else if (absl::EndsWith(name, names::kUntracedSuffix)) {
      UntracedProcess process{};
      if (!absl::SimpleAtoi(absl::StripSuffix(name, names::kUntracedSuffix), &process.pid)) continue;
      std::ifstream file(entry.path());
      std::getline(file, process.reason);
      folder.untraced.push_back(process);
    }
  }
  std::sort(folder.spools.begin(), folder.spools.end());
  const auto by_pid = [](const auto& a, const auto& b) { return a.pid < b.pid; };
  std::sort(folder.processes.begin(), folder.processes.end(), by_pid);
  folder.processes.erase(std::unique(folder.processes.begin(), folder.processes.end(),
                                     [](const TracedProcess& a, const TracedProcess& b) {
                                       return a.pid == b.pid && a.start_ticks == b.start_ticks;
                                     }),
                         folder.processes.end());
  std::sort(folder.untraced.begin(), folder.untraced.end(), by_pid);
  return folder;
}

std::vector<pid_t> StillRunning(const std::vector<TracedProcess>& processes, int grace_ms) {
  constexpr int kStepMs = 10;
  for (int waited = 0;; waited += kStepMs) {
    std::vector<pid_t> running;
    for (const TracedProcess& process : processes) {
      if (IsAlive(process.pid, process.start_ticks)) running.push_back(process.pid);
    }
    if (running.empty() || waited >= grace_ms) return running;
    usleep(kStepMs * 1000);
  }
}

void RemoveSpoolFolder(const std::string& path) {
  std::error_code error;
  std::vector<fs::path> ours;
  for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
    if (IsOurs(entry.path().filename().string())) ours.push_back(entry.path());
  }
  for (const fs::path& file : ours) fs::remove(file, error);
  rmdir(path.c_str());
}

std::vector<std::string> FindLeftovers(const std::string& directory) {
  std::vector<std::string> leftovers;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory.empty() ? "." : directory, error)) {
    if (!absl::EndsWith(entry.path().filename().string(), names::kSpoolFolderSuffix)) continue;
    const absl::StatusOr<RunRecord> record = ReadRunRecord(entry.path().string());
    if (record.ok() && !record->kept && !LauncherRuns(*record)) {
      leftovers.push_back(entry.path().lexically_normal().string());
    }
  }
  std::sort(leftovers.begin(), leftovers.end());
  return leftovers;
}

}  // namespace attntrace
