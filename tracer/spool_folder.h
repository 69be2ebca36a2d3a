// The folder that the processes of one run write their spools into: made, read, looked for, removed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "report/run_facts.h"

namespace attntrace {

// Makes `path`, or `<path stem>.<n>...` where a folder of that name is left from an earlier run; where its parent cannot be
// written, one of the same name below $TMPDIR or /tmp. Mode 0700. Returns the absolute path.
absl::StatusOr<std::string> CreateSpoolFolder(const std::string& path);

// $TMPDIR or /tmp.
std::string TemporaryFolder();

struct TracedProcess {
  pid_t pid;
  uint64_t start_ticks;
};

struct SpoolFolder {
  std::vector<std::string> spools;        // paths, sorted
  std::vector<TracedProcess> processes;   // of the spools, by their names; one entry a process
  std::vector<UntracedProcess> untraced;  // the *.untraced files
};

// NotFound where there is no such folder.
absl::StatusOr<SpoolFolder> ReadSpoolFolder(const std::string& path);

// Which of them still run. Waits up to `grace_ms` for those that are about to end with their parent.
std::vector<pid_t> StillRunning(const std::vector<TracedProcess>& processes, int grace_ms);

// Removes our files in it, then the folder; a file of somebody else is left, and the folder with it.
void RemoveSpoolFolder(const std::string& path);

// Spool folders in `directory` whose launcher is gone: there is something to recover. Kept ones do not count. Sorted.
std::vector<std::string> FindLeftovers(const std::string& directory);

}  // namespace attntrace
