// CUPTI's activity records: one pair of buffer callbacks and one clock a process, the last registration wins. The agent's stand
// back for a client of the program's, whichever comes first.
#include <atomic>

#include "tracer/preload/cupti.h"
#include "tracer/preload/turn.h"

namespace attntrace::preload {
namespace {

std::atomic<bool> g_peer{false};  // a client has brought buffers or a clock of its own
std::atomic<void (*)()> g_yield{nullptr};
std::atomic_flag g_turn = ATOMIC_FLAG_INIT;

}  // namespace

int TakeActivity(AttntraceBufferRequested requested, AttntraceBufferCompleted completed, void (*yield)()) noexcept {
  if (!Sharing()) return kAttntraceCuptiForked;
  const RealCupti& real = GetRealCupti();
  if (!real.found || real.register_buffers == nullptr) return kAttntraceCuptiMissing;
  Turn turn(&g_turn, 0);
  if (!turn.taken() || g_peer.load(std::memory_order_relaxed)) return kAttntraceCuptiPeer;
  int result = real.register_buffers(requested, completed);
  if (result == 0) g_yield.store(yield, std::memory_order_release);
  return result;
}

void YieldActivity() noexcept {
  if (!Sharing()) return;
  if (auto* yield = g_yield.exchange(nullptr, std::memory_order_acq_rel)) yield();
}

}  // namespace attntrace::preload

#define ATTNTRACE_EXPORT extern "C" __attribute__((visibility("default")))

using namespace attntrace::preload;

ATTNTRACE_EXPORT int cuptiActivityRegisterCallbacks(AttntraceBufferRequested requested, AttntraceBufferCompleted completed) {
  const RealCupti& real = GetRealCupti();
  if (!real.found || real.register_buffers == nullptr) return kCuptiNotInitialized;
  if (!Sharing()) return real.register_buffers(requested, completed);
  Turn turn(&g_turn, kPeerWait);
  g_peer.store(true, std::memory_order_relaxed);
  YieldActivity();
  return real.register_buffers(requested, completed);
}

ATTNTRACE_EXPORT int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)()) {
  const RealCupti& real = GetRealCupti();
  if (!real.found || real.register_clock == nullptr) return kCuptiNotInitialized;
  if (!Sharing()) return real.register_clock(clock);
  Turn turn(&g_turn, kPeerWait);
  g_peer.store(true, std::memory_order_relaxed);
  YieldActivity();
  return real.register_clock(clock);
}
