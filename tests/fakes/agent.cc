// An agent that writes what the preload tells it, one line each, to FAKE_AGENT_LOG.<pid>: the other side of
// tracer/preload/hooks.h for tests of the preload alone. FAKE_AGENT_REFUSE=reason refuses; FAKE_AGENT_SIZE=n claims a table of
// n bytes.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "tracer/preload/hooks.h"

namespace {

std::atomic<int64_t> g_cpu_live{0};
std::atomic<int64_t> g_cpu_peak{0};
std::atomic<int64_t> g_reports{0};
std::atomic<int64_t> g_allocated{0};

// Formats into the stack and appends with one write, so that it may be called under the allocator's lock and after a fork.
template <typename... Values>
void Log(const char* format, Values... values) {
  const char* prefix = getenv("FAKE_AGENT_LOG");
  if (prefix == nullptr) return;
  char path[4096];
  snprintf(path, sizeof(path), "%s.%d", prefix, static_cast<int>(getpid()));
  char line[8192];
  int length = snprintf(line, sizeof(line), format, values...);
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;
  if (write(file, line, static_cast<size_t>(length)) != length) abort();
  close(file);
}

void OnMemory(void* pointer, int64_t bytes, size_t total_allocated, size_t total_reserved, int8_t type, int8_t index) {
  if (type != 0) return;
  int64_t live = g_cpu_live.fetch_add(bytes) + bytes;
  if (live > g_cpu_peak) g_cpu_peak = live;  // good enough for one thread
  if (bytes > 0) g_allocated += bytes;
  ++g_reports;
}

void OnOutOfMemory(int64_t bytes, size_t, size_t, int8_t type, int8_t index) {
  Log("out_of_memory bytes=%lld device=%d:%d\n", static_cast<long long>(bytes), type, index);
}

// Source files that are compiled or opened come by the thousand and depend on what is cached: they are not for an exact log.
void OnAudit(const char* event, void* args) {
  if (strcmp(event, "compile") == 0 || strcmp(event, "open") == 0) return;
  Log("audit %s args=%d\n", event, args != nullptr);
}

void OnExit() {
  Log("at_exit live=%lld peak=%lld allocated=%lld reports=%lld\n", static_cast<long long>(g_cpu_live),
      static_cast<long long>(g_cpu_peak), static_cast<long long>(g_allocated), static_cast<long long>(g_reports));
}

AttntraceHooks g_hooks{sizeof(AttntraceHooks), OnMemory, OnOutOfMemory, OnAudit, OnExit, nullptr, nullptr, nullptr, nullptr};

}  // namespace

extern "C" __attribute__((visibility("default"))) const AttntraceHooks* attntrace_agent_start(const AttntraceStart* start,
                                                                                              const char** reason) {
  if (const char* refuse = getenv("FAKE_AGENT_REFUSE")) {
    Log("refuse\n");
    *reason = refuse;
    return nullptr;
  }
  if (const char* size = getenv("FAKE_AGENT_SIZE")) g_hooks.size = static_cast<uint32_t>(atoi(size));
  g_cpu_live = start->cpu_live_bytes;
  g_cpu_peak = start->cpu_peak_bytes;
  g_allocated = static_cast<int64_t>(start->cpu_allocated_bytes);
  g_reports = static_cast<int64_t>(start->cpu_allocations + start->cpu_frees);
  Log("start size=%d torch=%s has_python=%d library=%s spool=%s live=%lld peak=%lld allocated=%llu allocations=%llu "
      "frees=%llu\n",
      start->size == sizeof(AttntraceStart), start->torch_version, start->has_python, start->torch_library,
      start->spool_directory, static_cast<long long>(start->cpu_live_bytes), static_cast<long long>(start->cpu_peak_bytes),
      static_cast<unsigned long long>(start->cpu_allocated_bytes), static_cast<unsigned long long>(start->cpu_allocations),
      static_cast<unsigned long long>(start->cpu_frees));
  return &g_hooks;
}
