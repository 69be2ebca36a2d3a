#include "collectors/cupti/gpu_time.h"

#include <sys/mman.h>
#include <time.h>

#include <cstdlib>
#include <cstring>

#include "collectors/cupti/abi.h"
#include "collectors/cupti/graphs.h"
#include "collectors/cupti/tickets.h"
#include "collectors/cupti/window.h"
#include "collectors/cupti/worker.h"
#include "collectors/spool_writer.h"

namespace attntrace {

std::atomic<bool> g_gpu_time_on{false};

namespace {

// CUPTI asks for a buffer on the thread that launches, since CUDA 13 one for each of them.
constexpr size_t kBuffers = 64, kBufferBytes = 256 * 1024;
constexpr int kLastFlushMs = 2000;
constexpr uint64_t kClockSlackNs = 10'000'000'000;

struct Functions {
  int (*enable)(int kind);
  int (*disable)(int kind);
  int (*flush)(uint32_t flags);
  int (*next_record)(uint8_t* buffer, size_t valid, uint8_t** record);
  int (*dropped)(void* context, uint32_t stream, size_t* count);
  int (*timestamp)(uint64_t*);
};
Functions g_cupti_calls;
uint32_t g_version = 0;
uint64_t g_start_ns = 0;  // on the clock of the records

uint8_t* g_buffers = nullptr;  // kBuffers of them, and one more that nobody reads
std::atomic<bool> g_lent[kBuffers];
std::atomic<bool> g_last_flush_done{false};

uint64_t RealtimeNs() noexcept {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1000000000u + static_cast<uint64_t>(time.tv_nsec);
}

template <typename T>
T At(const uint8_t* record, size_t offset) noexcept {
  T value;
  memcpy(&value, record + offset, sizeof(value));
  return value;
}

// CUPTI's clock is the wall clock. A client that replaced it by another one (PyTorch's profiler takes the cycle counter) leaves
// its mark on every later record, and kernels that had not ended when a flush was forced have no times.
bool ReadTimes(const uint8_t* record, uint64_t now_ns, uint64_t* ns) noexcept {
  const auto start = At<uint64_t>(record, cupti::kRecordStart), end = At<uint64_t>(record, cupti::kRecordEnd);
  if (end < start || start + kClockSlackNs < g_start_ns || end > now_ns + kClockSlackNs) return false;
  *ns = end - start;
  return true;
}

void ReadRecord(const uint8_t* record, uint64_t now_ns) noexcept {
  const auto kind = At<int32_t>(record, cupti::kRecordKind);
  if (kind != cupti::kConcurrentKernel && kind != cupti::kKernel) return;
  uint64_t ns = 0;
  if (!ReadTimes(record, now_ns, &ns)) {
    Spool().Add(Counter::kGpuRecordsBad);
    return;
  }
  Spool().Add(Counter::kGpuKernelsTimed);
  Spool().Add(Counter::kGpuNs, ns);
  if (const auto node = At<uint64_t>(record, cupti::kRecordGraphNode); node != 0) {
    AddTime(SlotOfNode(node), ns, 1);
  } else {
    AddLaunchTime(At<uint32_t>(record, cupti::kRecordCorrelation), ns);
  }
}

void OnRequested(uint8_t** buffer, size_t* size, size_t* most_records) noexcept {
  *most_records = 0;  // as many as fit
  *size = kBufferBytes;
  for (size_t i = 0; i < kBuffers; ++i) {
    if (g_lent[i].load(std::memory_order_relaxed) || g_lent[i].exchange(true, std::memory_order_acquire)) continue;
    *buffer = g_buffers + i * kBufferBytes;
    return;
  }
  if (g_version >= cupti::kMayRefuseBuffer) {
    *buffer = nullptr;  // CUPTI drops the records, and counts them
    *size = 0;
  } else {
    *buffer = g_buffers + kBuffers * kBufferBytes;
  }
}

void OnCompleted(void*, uint32_t, uint8_t* buffer, size_t, size_t valid) noexcept {
  if (buffer == nullptr || g_buffers == nullptr || buffer < g_buffers || buffer > g_buffers + kBuffers * kBufferBytes) return;
  const size_t index = static_cast<size_t>(buffer - g_buffers) / kBufferBytes;
  if (index == kBuffers) {
    Spool().Add(Counter::kGpuRecordsLost);  // at least one; how many cannot be told
    return;
  }
  const uint64_t now_ns = RealtimeNs();
  uint8_t* record = nullptr;
  while (valid <= kBufferBytes && g_cupti_calls.next_record(buffer, valid, &record) == cupti::kSuccess) {
    if (record < buffer || record + sizeof(int32_t) > buffer + valid) break;
    // Short records are of kinds that are not read.
    if (record + cupti::kRecordLeast <= buffer + valid) ReadRecord(record, now_ns);
  }
  g_lent[index].store(false, std::memory_order_release);
}

void CountDropped() noexcept {
  size_t count = 0;
  if (g_cupti_calls.dropped != nullptr && g_cupti_calls.dropped(nullptr, 0, &count) == cupti::kSuccess && count > 0) {
    Spool().Add(Counter::kGpuRecordsLost, count);
  }
}

void Tick() noexcept {
  if (!GpuTimeOn()) return;
  g_cupti_calls.flush(0);
  CountDropped();
}

void StopRecords() noexcept {
  for (const int kind : {cupti::kConcurrentKernel, cupti::kMemcpy, cupti::kMemset}) {
    if (kind == cupti::kConcurrentKernel || g_version < cupti::kDrainsGraphs) g_cupti_calls.disable(kind);
  }
}

void FlushForTheLastTime(void*) noexcept {
  g_cupti_calls.flush(cupti::kFlushForced);
  CountDropped();
  g_last_flush_done.store(true, std::memory_order_release);
}

// Every buffer comes back before the peer's callbacks replace ours: one that it did not hand out would be none of its own.
void GiveBuffersUp(void*) noexcept {
  g_cupti_calls.flush(0);
  g_cupti_calls.flush(cupti::kFlushForced);
  StopRecords();
  CountDropped();
}

void OnPeer() noexcept {
  if (!g_gpu_time_on.exchange(false, std::memory_order_acq_rel)) return;
  const bool done = RunOnWorker(GiveBuffersUp, nullptr, kLastFlushMs);
  Spool().Note("gpu-time",
               done ? "another client of CUPTI's came (a profiler): device times were taken until then"
                    : "another client of CUPTI's came (a profiler), and CUPTI did not answer in time: device times were "
                      "taken until then, and records may have gone to it");
}

// Registered after the driver was initialised, so it runs before the driver is taken down.
void AtExit() noexcept {
  if (!GpuTimeOn()) return;
  const bool done = RunOnWorker(FlushForTheLastTime, nullptr, kLastFlushMs);
  g_gpu_time_on.store(false, std::memory_order_relaxed);
  if (!done) Spool().Note("gpu-time", "CUPTI did not give its last records within 2 s: times of the last kernels are missing");
}

template <typename Function>
bool Take(const char* name, Function* function) noexcept {
  *function = reinterpret_cast<Function>(CuptiFunction(name));
  return *function != nullptr;
}

const char* Prepare() noexcept {
  int (*version)(uint32_t*) = nullptr;
  if (!Take("cuptiGetVersion", &version) || version(&g_version) != cupti::kSuccess || g_version < cupti::kOldestVersion ||
      !Take("cuptiActivityEnable", &g_cupti_calls.enable) || !Take("cuptiActivityDisable", &g_cupti_calls.disable) ||
      !Take("cuptiActivityFlushAll", &g_cupti_calls.flush) || !Take("cuptiActivityGetNextRecord", &g_cupti_calls.next_record)) {
    return "this libcupti is too old: device times are not taken";
  }
  Take("cuptiActivityGetNumDroppedRecords", &g_cupti_calls.dropped);
  g_start_ns = RealtimeNs();
  uint64_t now = 0;
  if (Take("cuptiGetTimestamp", &g_cupti_calls.timestamp) && g_cupti_calls.timestamp(&now) == cupti::kSuccess &&
      (now + kClockSlackNs < g_start_ns || now > g_start_ns + kClockSlackNs)) {
    return "CUPTI's clock is not the wall clock, another client has replaced it: device times are not taken";
  }
  void* const memory = mmap(nullptr, (kBuffers + 1) * kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return "no memory for CUPTI's records: device times are not taken";
  g_buffers = static_cast<uint8_t*>(memory);
  return nullptr;
}

}  // namespace

void StartGpuTime(const AttntraceCupti* cupti) noexcept {
  static std::atomic<bool> tried{false};
  if (tried.exchange(true, std::memory_order_relaxed)) return;
  const char* refusal = Prepare();
  if (refusal == nullptr) {
    const int answer = cupti->take_activity(OnRequested, OnCompleted, OnPeer);
    if (answer == kAttntraceCuptiPeer) {
      refusal = "a client of CUPTI's (a profiler) was there first: device times are not taken";
    } else if (answer != 0 || g_cupti_calls.enable(cupti::kConcurrentKernel) != cupti::kSuccess) {
      refusal = "CUPTI gives no records of kernels: device times are not taken";
    }
  }
  if (refusal != nullptr) {
    Spool().Note("gpu-time", refusal);
    return;
  }
  if (g_version < cupti::kDrainsGraphs) {
    for (const int kind : {cupti::kMemcpy, cupti::kMemset}) g_cupti_calls.enable(kind);
  }
  int (*id_of)(void*, uint64_t*) = nullptr;
  if (Take("cuptiGetGraphNodeId", &id_of)) NumberNodes(id_of);
  atexit(AtExit);
  SetWorkerTick(Tick);
  g_gpu_time_on.store(true, std::memory_order_release);
}

void StopGpuTimeAfterFork() noexcept { g_gpu_time_on.store(false, std::memory_order_relaxed); }

}  // namespace attntrace
