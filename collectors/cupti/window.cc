#include "collectors/cupti/window.h"

#include <dlfcn.h>

#include <algorithm>

#include "collectors/cupti/abi.h"
#include "collectors/cupti/devices.h"
#include "collectors/cupti/gpu_time.h"
#include "collectors/cupti/holder.h"
#include "collectors/cupti/worker.h"
#include "collectors/mapped.h"
#include "collectors/spool_writer.h"

namespace attntrace {

std::atomic<bool> g_watch_asks{false};
std::atomic<bool> g_watch_enabled{false};

namespace {

constexpr uint32_t kQuietBeginnings = 64;
constexpr uint32_t kQuietLaunches = 20000;
// The first subscription takes 16 ms, seconds where old drivers make code for it.
constexpr int kPatienceMs = 5000;
constexpr int kHung = INT32_MIN;

const AttntraceCupti* g_cupti = nullptr;
WatchSettings g_settings;

std::atomic<uint32_t> g_devices_seen{0}, g_devices_recorded{0};  // bit a device
std::atomic<bool> g_open{false}, g_graphs{false}, g_stale{false}, g_given_up{false};
std::atomic<uint64_t> g_generation{0};  // as of the last time that the window was asked for
std::atomic<uint32_t> g_quiet{0}, g_quiet_launches{0};
std::atomic<uint32_t> g_refusals{0};
std::atomic<int32_t> g_patience{0};  // needs to let pass before CUPTI is asked again after a refusal
std::atomic_flag g_changing = ATOMIC_FLAG_INIT;
std::atomic<bool> g_forked{false};

int FillSites(bool launches, AttntraceCuptiSite* sites) noexcept {
  int count = 0;
  if (launches) {
    for (const uint32_t callback : cupti::kLaunchCallbacks) sites[count++] = {cupti::kDriverApi, callback};
  }
  if (g_graphs.load(std::memory_order_relaxed) || launches) {
    for (const uint32_t callback : {cupti::kGraphLaunch, cupti::kGraphLaunchPerThread})
      sites[count++] = {cupti::kDriverApi, callback};
  }
  if (g_graphs.load(std::memory_order_relaxed)) {
    for (const uint32_t callback : {cupti::kGraphDestroyStarting, cupti::kGraphNodeCreated, cupti::kGraphNodeDestroyStarting,
                                    cupti::kGraphExecCreateStarting, cupti::kGraphExecCreated, cupti::kGraphExecDestroyStarting,
                                    cupti::kGraphNodeCloned}) {
      sites[count++] = {cupti::kResource, callback};
    }
  }
  return count;
}

void GiveUp(const char* text) noexcept {
  g_given_up.store(true, std::memory_order_relaxed);
  g_watch_enabled.store(false, std::memory_order_relaxed);
  g_open.store(false, std::memory_order_relaxed);
  Spool().Note("cupti", text);
}

void OnRefusal(int answer) noexcept {
  g_open.store(false, std::memory_order_relaxed);
  switch (answer) {
    case kAttntraceCuptiBusy:
      return;
    case kAttntraceCuptiForked:
      g_watch_enabled.store(false, std::memory_order_relaxed);
      Spool().Note("cupti-forked", "a forked child leaves CUPTI alone: the kernels of its calls are not named");
      return;
    case kAttntraceCuptiMissing:
      return GiveUp("no libcupti is in this process: the kernels of its calls are not named");
    case cupti::kMultipleSubscribers:
    case cupti::kMaxLimitReached: {
      const uint32_t refusals = g_refusals.fetch_add(1, std::memory_order_relaxed);
      g_patience.store(64 << std::min(refusals, 10u), std::memory_order_relaxed);
      if (refusals == 0) NoteHolder();
      return;
    }
    default: {
      char text[200];
      DescribeRefusal(answer, text, sizeof(text));
      return GiveUp(text);
    }
  }
}

// What the worker is asked to do; one at a time, by g_changing. One that never ends keeps both.
struct Wish {
  AttntraceCuptiSite sites[32];
  int count = 0, answer = 0;
  bool gpu_time = false;
};
Wish g_wish;

void Grant(void*) noexcept {
  g_wish.answer = g_cupti->want(g_wish.sites, g_wish.count);
  if (g_given_up.load(std::memory_order_relaxed)) {  // nobody waits any more
    g_cupti->want(nullptr, 0);
  } else if (g_wish.answer == 0 && g_wish.gpu_time) {
    StartGpuTime(g_cupti);
  }
}

int GrantInTime() noexcept {
  if (g_forked.load(std::memory_order_relaxed)) return kAttntraceCuptiForked;
  static std::atomic<bool> first{true};
  const bool read = g_wish.count > 0 && first.exchange(false, std::memory_order_relaxed);
  const int64_t before = read ? ReadDeviceMemory() : -1;
  if (!RunOnWorker(Grant, nullptr, kPatienceMs)) return kHung;
  const int64_t after = g_wish.count == 0 || read ? ReadDeviceMemory() : -1;  // now and then: as it is opened first, and closed
  if (read && before >= 0 && after > before) NoteCuptiMemory(after - before);
  return g_wish.answer;
}

// Sets what CUPTI is asked for; the window's state follows. Gives way where another thread is at it.
void Ask(bool launches) noexcept {
  if (g_changing.test_and_set(std::memory_order_acquire)) return;
  // It looks CUPTI's functions up in the library, fails where somebody has subscribed, and takes the program with it.
  if (launches && !g_open.load(std::memory_order_relaxed) && IsMapped("libproton")) {
    GiveUp("Triton's profiler is in this process, and CUPTI is left to it: the kernels of attention calls are not named");
    g_changing.clear(std::memory_order_release);
    return;
  }
  g_wish.count = FillSites(launches, g_wish.sites);
  g_wish.gpu_time = launches && g_settings.gpu_time;
  const int answer = GrantInTime();
  if (answer == kHung) {
    return GiveUp("CUPTI has not answered for 5 s: the kernels of attention calls are not named");
  }
  if (answer == 0) {
    g_generation.store(g_cupti->generation(), std::memory_order_relaxed);
    g_open.store(launches, std::memory_order_release);
    RecordCuptiVersion();
  } else if (launches) {
    OnRefusal(answer);
  }
  g_changing.clear(std::memory_order_release);
}

bool Current() noexcept { return g_generation.load(std::memory_order_relaxed) == g_cupti->generation(); }

void Close() noexcept {
  if (g_open.load(std::memory_order_relaxed) && !g_settings.everything) Ask(false);
}

}  // namespace

void StartWatch(const AttntraceCupti* cupti, const WatchSettings& settings) noexcept {
  g_settings = settings;
  if (settings.gpu_time) g_settings.everything = true;
  g_cupti = settings.instances > 0 || g_settings.everything ? cupti : nullptr;
}

int WantedInstances() noexcept { return g_settings.instances; }

void OnCudaMemory(int device) noexcept {
  const uint32_t bit = 1u << (device & 31);
  if ((g_devices_seen.load(std::memory_order_relaxed) & bit) != 0) return;
  g_devices_seen.fetch_or(bit, std::memory_order_relaxed);
  g_watch_asks.store(true, std::memory_order_release);
}

void TendWatch() noexcept {
  if (!g_watch_asks.exchange(false, std::memory_order_acq_rel)) return;
  const uint32_t seen = g_devices_seen.load(std::memory_order_relaxed);
  const uint32_t fresh = seen & ~g_devices_recorded.fetch_or(seen, std::memory_order_relaxed);
  for (int device = 0; device < 32; ++device) {
    if ((fresh >> device & 1) != 0) RecordDevice(device);
  }
  if (fresh != 0 && g_cupti != nullptr && !g_given_up.load(std::memory_order_relaxed)) {
    g_watch_enabled.store(true, std::memory_order_relaxed);
    WatchNeeded();
  }
  if (g_stale.exchange(false, std::memory_order_relaxed)) Close();
}

void WatchNeeded() noexcept {
  if (!WatchEnabled()) return;
  g_quiet.store(0, std::memory_order_relaxed);
  g_quiet_launches.store(0, std::memory_order_relaxed);
  if (g_open.load(std::memory_order_relaxed) && Current()) return;
  if (g_patience.load(std::memory_order_relaxed) > 0 && g_patience.fetch_sub(1, std::memory_order_relaxed) > 0) return;
  Ask(true);
}

void WatchSettled() noexcept {
  if (!g_open.load(std::memory_order_relaxed)) {
    // Graph launches are counted all the time, whoever came and went meanwhile.
    if (g_graphs.load(std::memory_order_relaxed) && !Current()) Ask(g_settings.everything);
    return;
  }
  if (g_settings.everything) {
    if (!Current()) Ask(true);
  } else if (g_quiet.fetch_add(1, std::memory_order_relaxed) >= kQuietBeginnings) {
    Close();
  }
}

void CountWatchedLaunch() noexcept {
  if (g_quiet_launches.fetch_add(1, std::memory_order_relaxed) != kQuietLaunches || g_settings.everything) return;
  g_stale.store(true, std::memory_order_relaxed);
  g_watch_asks.store(true, std::memory_order_release);
}

void WatchGraphs() noexcept {
  if (!WatchEnabled()) return;
  if (g_graphs.exchange(true, std::memory_order_relaxed) && Current()) return;
  Ask(g_open.load(std::memory_order_relaxed));
}

void StopWatchAfterFork() noexcept {
  g_forked.store(true, std::memory_order_relaxed);
  ForgetWorkerAfterFork();
  StopGpuTimeAfterFork();
  g_watch_enabled.store(false, std::memory_order_relaxed);
  g_open.store(false, std::memory_order_relaxed);
  g_graphs.store(false, std::memory_order_relaxed);
  g_devices_seen.store(0, std::memory_order_relaxed);  // a child that uses CUDA is told of, once
  g_devices_recorded.store(0, std::memory_order_relaxed);
  g_changing.clear();
}

uint64_t WatchEpoch() noexcept {
  if (!g_open.load(std::memory_order_acquire)) return 0;
  return g_cupti->generation() + 1;
}

void* CuptiFunction(const char* name) noexcept {
  void* const library = g_cupti != nullptr ? g_cupti->library() : nullptr;
  return library != nullptr ? dlsym(library, name) : nullptr;
}

}  // namespace attntrace
