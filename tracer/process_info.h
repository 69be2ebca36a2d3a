// Is that process still there? By pid and start time, as /proc tells it, so that a reused pid does not pass for the old one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace attntrace {

// Field 22 of /proc/<pid>/stat; 0 where there is no such process or it is only waiting to be reaped.
uint64_t StartTicks(pid_t pid);

inline bool IsAlive(pid_t pid, uint64_t start_ticks) { return start_ticks != 0 && StartTicks(pid) == start_ticks; }

std::string HostName();

// Wall clock in ns since 1970, and a clock for durations.
uint64_t WallClockNs();
uint64_t MonotonicNs();

}  // namespace attntrace
