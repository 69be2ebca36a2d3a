// What the launcher told this process, read once from the environment before main.
//
// Inside every process of the job. Written by the constructor only, read by every thread afterwards.
#pragma once

#include <climits>

namespace attntrace::preload {

struct Settings {
  bool tracing;                    // false: the preload passes everything through and does nothing of its own
  char spool_directory[PATH_MAX];  // copies: the program may change its environment
  char agent_directory[PATH_MAX];
};

const Settings& GetSettings() noexcept;
void ReadSettings() noexcept;

}  // namespace attntrace::preload
