#include "tracer/process_info.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace attntrace {
namespace {

uint64_t ClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t StartTicks(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (pid <= 0 || !std::getline(file, text)) return 0;
  // The second field is the program's name in parentheses and may hold anything, parentheses too.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(text.substr(name_end + 1));
  std::string state, skipped;
  rest >> state;
  if (state == "Z" || state == "X") return 0;
  for (int field = 4; field < 22; ++field) rest >> skipped;
  uint64_t ticks = 0;
  rest >> ticks;
  return rest ? ticks : 0;
}

std::string HostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

uint64_t WallClockNs() { return ClockNs(CLOCK_REALTIME); }
uint64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }

}  // namespace attntrace
