// The agent's entry: starts every collector in a process that maps libtorch. See tracer/preload/hooks.h for the seam.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "collectors/call_path.h"
#include "collectors/cupti/launches.h"
#include "collectors/cupti/window.h"
#include "collectors/dispatch.h"
#include "collectors/dropped.h"
#include "collectors/environment.h"
#include "collectors/event_filter.h"
#include "collectors/exceptions.h"
#include "collectors/fault.h"
#include "collectors/fork.h"
#include "collectors/inline_reference.h"
#include "collectors/memory.h"
#include "collectors/python_api.h"
#include "collectors/spool_writer.h"
#include "collectors/thread_state.h"
#include "collectors/variants.h"
#include "tracer/preload/hooks.h"
#include "tracer/spool/names.h"

namespace attntrace {
namespace {

// Value of a key in ATTNTRACE_OPTIONS (key=value:key=value), null or -1 where it is not there. The launcher has checked names
// and values.
const char* OptionText(const char* key) noexcept {
  const char* at = getenv(names::kOptions);
  const size_t length = strlen(key);
  while (at != nullptr && *at != 0) {
    if (strncmp(at, key, length) == 0 && at[length] == '=') return at + length + 1;
    at = strchr(at, ':');
    if (at != nullptr) ++at;
  }
  return nullptr;
}

int Option(const char* key) noexcept {
  const char* const text = OptionText(key);
  return text != nullptr ? static_cast<int>(strtol(text, nullptr, 10)) : -1;
}

InlineSettings ReadInlineSettings() noexcept {
  InlineSettings settings;
  const char* const reference = OptionText("reference");
  constexpr char kWord[] = "inline";
  const size_t length = sizeof(kWord) - 1;
  settings.on =
      reference != nullptr && strncmp(reference, kWord, length) == 0 && (reference[length] == 0 || reference[length] == ':');
  if (const int seconds = Option("reference-budget"); seconds >= 0) settings.budget_seconds = seconds;
  if (const int percent = Option("reference-memory"); percent > 0) settings.memory_percent = percent;
  return settings;
}

void OnMemory(void* pointer, int64_t bytes, size_t total_allocated, size_t total_reserved, int8_t device_type,
              int8_t device_index) {
  const int space = MemorySpace(device_type == 0   ? DeviceKind::kCpu
                                : device_type == 1 ? DeviceKind::kCuda
                                                   : DeviceKind::kOther,
                                device_index);
  if (space < 0 || bytes == 0) return;
  ThreadState* const state = CurrentThread();
  if (state != nullptr && state->inline_meter != nullptr) return state->inline_meter->Count(space, bytes);
  CountProcess(space, bytes, total_allocated, total_reserved);
  if (space > 0) OnCudaMemory(space - 1);
  if (state == nullptr) return;
  state->memory.Count(space, bytes);
  if (bytes > 0) {
    state->lineage.OnAllocate(pointer, bytes, space);
  } else {
    state->lineage.OnFree(pointer);
  }
}

void OnExit() {
  StopDroppedExceptions();
  VisitThreads([](ThreadState* state) { CloseBackward(state); });
  StopDispatch();
  Spool().header().state.store(spool::State::kCleanExit, std::memory_order_release);
}

const AttntraceHooks kHooks = {sizeof(AttntraceHooks), OnMemory, nullptr, OnAudit, OnExit, OnCupti, SkipEvent, SkipRecord,
                               SameRecordState};

void SetCounter(Counter counter, uint64_t value) noexcept {
  Spool().header().counters[static_cast<size_t>(counter)].store(value, std::memory_order_relaxed);
}

bool StartAll(const AttntraceStart& start, std::string* reason) noexcept {
  if (!Spool().Create(start.spool_directory, reason)) return false;
  SetCounter(Counter::kCpuLiveBytes, static_cast<uint64_t>(start.cpu_live_bytes));
  SetCounter(Counter::kCpuPeakBytes, static_cast<uint64_t>(start.cpu_peak_bytes));
  SetCounter(Counter::kCpuAllocatedBytes, start.cpu_allocated_bytes);
  SetCounter(Counter::kCpuAllocations, start.cpu_allocations);
  SetCounter(Counter::kCpuFrees, start.cpu_frees);
  if (const int depth = Option("stack-depth"); depth > 0) SetStackDepth(depth);
  if (const int shapes = Option("max-shapes"); shapes > 0) SetMaxShapes(shapes);
  if (start.has_python != 0 && !python::Load()) {
    Spool().Note("python", "this interpreter's C API is not the one expected: call paths are native frames only");
  } else if (start.has_python != 0 && !python::LocalsReadable()) {
    Spool().Note("python-locals", "before Python 3.11 local variables cannot be read safely: modules and layers are not named");
  }
  RecordTorchEnvironment(start.torch_version, start.torch_library);
  WatchSettings watch;
  if (const int calls = Option("kernel-calls"); calls >= 0) watch.instances = calls;
  watch.everything = Option("watch-launches") == 1;
  watch.gpu_time = Option("gpu-time") == 1;
  StartWatch(start.cupti, watch);
  StartInlineReference(ReadInlineSettings());
  if (python::Loaded()) WatchDroppedExceptions();
  WatchForks();
  StartDispatch(start.global_callbacks);
  return true;
}

}  // namespace
}  // namespace attntrace

extern "C" __attribute__((visibility("default"))) const AttntraceHooks* attntrace_agent_start(const AttntraceStart* start,
                                                                                              const char** reason) {
  static std::string why;
  if (start == nullptr || start->size != sizeof(AttntraceStart)) {
    why = "the preload and the agent are of different builds; install both from one";
  } else if (attntrace::Guarded("agent", false, [&] { return attntrace::StartAll(*start, &why); })) {
    return &attntrace::kHooks;
  }
  if (reason != nullptr) *reason = why.c_str();
  return nullptr;
}
