#include "tracer/preload/cupti.h"

#include <pthread.h>

#include <atomic>

#include "tracer/preload/attach.h"
#include "tracer/preload/settings.h"
#include "tracer/preload/turn.h"

namespace attntrace::preload {
namespace {

constexpr int kDomains = 8;
constexpr uint32_t kCallbacks = 1024;  // of one domain; CUDA 13 has about 800 in the largest

// Which callbacks somebody wants. Read in every callback, without a lock.
struct Wishes {
  std::atomic<uint64_t> bits[kDomains][kCallbacks / 64];

  static bool Known(int domain, uint32_t callback) noexcept {
    return domain >= 0 && domain < kDomains && callback < kCallbacks;
  }
  bool Has(int domain, uint32_t callback) const noexcept {
    return Known(domain, callback) && (bits[domain][callback / 64].load(std::memory_order_relaxed) >> (callback % 64) & 1) != 0;
  }
  void Set(int domain, uint32_t callback, bool on) noexcept {
    if (!Known(domain, callback)) return;
    uint64_t bit = uint64_t{1} << (callback % 64);
    if (on) {
      bits[domain][callback / 64].fetch_or(bit, std::memory_order_relaxed);
    } else {
      bits[domain][callback / 64].fetch_and(~bit, std::memory_order_relaxed);
    }
  }
  void SetDomain(int domain, bool on) noexcept {
    if (domain < 0 || domain >= kDomains) return;
    for (auto& word : bits[domain]) word.store(on ? ~uint64_t{0} : 0, std::memory_order_relaxed);
  }
  void SetAll(bool on) noexcept {
    for (int domain = 0; domain < kDomains; ++domain) SetDomain(domain, on);
  }
  template <typename Visit>
  void ForEach(Visit visit) const noexcept {
    for (int domain = 0; domain < kDomains; ++domain) {
      for (uint32_t word = 0; word < kCallbacks / 64; ++word) {
        uint64_t left = bits[domain][word].load(std::memory_order_relaxed);
        for (; left != 0; left &= left - 1) visit(domain, word * 64 + static_cast<uint32_t>(__builtin_ctzll(left)));
      }
    }
  }
};

enum class Holder { kNobody, kAgent, kPeer };

// Changed in turns (see Turn); read anywhere.
Wishes g_ours;
Wishes g_peers;
std::atomic<Holder> g_holder{Holder::kNobody};
std::atomic<void*> g_subscriber{nullptr};
std::atomic<CuptiCallback> g_peer_callback{nullptr};
std::atomic<void*> g_peer_user{nullptr};
std::atomic<uint64_t> g_generation{0};
std::atomic<bool> g_forked{false};
std::atomic_flag g_turn = ATOMIC_FLAG_INIT;

void OnCallback(void*, int domain, uint32_t callback, const void* data) noexcept {
  if (g_forked.load(std::memory_order_relaxed)) return;
  if (g_ours.Has(domain, callback)) {
    const AttntraceHooks* hooks = ConnectedHooks();
    if (hooks != nullptr && hooks->cupti != nullptr) hooks->cupti(domain, callback, data);
  }
  CuptiCallback peer = g_peer_callback.load(std::memory_order_acquire);
  if (peer != nullptr && (g_peers.Has(domain, callback) || !Wishes::Known(domain, callback))) {
    peer(g_peer_user.load(std::memory_order_relaxed), domain, callback, data);
  }
}

void Changed() noexcept { g_generation.fetch_add(1, std::memory_order_release); }

// A callback that this CUPTI does not know stays wished for and is never called.
void EnableOurs(const RealCupti& real) noexcept {
  void* subscriber = g_subscriber.load(std::memory_order_relaxed);
  g_ours.ForEach([&](int domain, uint32_t callback) { real.enable_callback(1, subscriber, domain, callback); });
}

void Forget() noexcept {
  g_holder.store(Holder::kNobody, std::memory_order_release);
  g_subscriber.store(nullptr, std::memory_order_relaxed);
  g_peer_callback.store(nullptr, std::memory_order_release);
  g_peers.SetAll(false);
  Changed();
}

void AfterForkInChild() noexcept { g_forked.store(true, std::memory_order_relaxed); }

void WatchForksOnce() noexcept {
  static std::atomic<bool> watched{false};
  if (!watched.exchange(true)) pthread_atfork(nullptr, nullptr, AfterForkInChild);
}

bool InWishes(const AttntraceCuptiSite* sites, int count, int domain, uint32_t callback) noexcept {
  for (int i = 0; i < count; ++i) {
    if (sites[i].domain == domain && sites[i].callback == callback) return true;
  }
  return false;
}

int Want(const AttntraceCuptiSite* sites, int count) noexcept {
  if (g_forked.load(std::memory_order_relaxed)) return kAttntraceCuptiForked;
  const RealCupti& real = GetRealCupti();
  if (!real.found) return kAttntraceCuptiMissing;
  Turn turn(&g_turn, 0);  // the agent never waits
  if (!turn.taken()) return kAttntraceCuptiBusy;
  WatchForksOnce();
  if (count == 0 && g_holder.load(std::memory_order_relaxed) == Holder::kAgent) {
    g_ours.SetAll(false);
    int result = real.unsubscribe(g_subscriber.load(std::memory_order_relaxed));
    Forget();
    return result;
  }
  if (count > 0 && g_holder.load(std::memory_order_relaxed) == Holder::kNobody) {
    void* subscriber = nullptr;
    if (int result = real.subscribe(&subscriber, OnCallback, nullptr); result != 0) return result;
    g_subscriber.store(subscriber, std::memory_order_relaxed);
    g_holder.store(Holder::kAgent, std::memory_order_release);
    g_ours.SetAll(false);
    Changed();
  }
  void* subscriber = g_subscriber.load(std::memory_order_relaxed);
  g_ours.ForEach([&](int domain, uint32_t callback) {
    if (InWishes(sites, count, domain, callback)) return;
    g_ours.Set(domain, callback, false);
    if (subscriber != nullptr && !g_peers.Has(domain, callback)) real.enable_callback(0, subscriber, domain, callback);
  });
  for (int i = 0; i < count; ++i) {
    if (g_ours.Has(sites[i].domain, sites[i].callback)) continue;
    g_ours.Set(sites[i].domain, sites[i].callback, true);
    real.enable_callback(1, subscriber, sites[i].domain, sites[i].callback);
  }
  return 0;
}

uint64_t Generation() noexcept { return g_generation.load(std::memory_order_acquire); }

int Shared() noexcept { return g_holder.load(std::memory_order_acquire) == Holder::kPeer ? 1 : 0; }

void* AgentLibrary() noexcept { return GetRealCupti().library; }

const AttntraceCupti kForAgent = {Want, Generation, Shared, AgentLibrary, TakeActivity};

bool IsPeers(void* subscriber) noexcept {
  return g_holder.load(std::memory_order_acquire) == Holder::kPeer &&
         subscriber == g_subscriber.load(std::memory_order_relaxed);
}

}  // namespace

bool Sharing() noexcept { return GetSettings().tracing && !g_forked.load(std::memory_order_relaxed); }

const AttntraceCupti* CuptiForAgent() noexcept { return &kForAgent; }

}  // namespace attntrace::preload

// ---- What the program calls -----------------------------------------------------------------------------------------------
#define ATTNTRACE_EXPORT extern "C" __attribute__((visibility("default")))

using namespace attntrace::preload;

template <typename Subscribe>
static int SubscribePeer(void** subscriber, CuptiCallback callback, void* user, Subscribe subscribe) noexcept {
  YieldActivity();  // a new subscription counts its launches afresh
  Turn turn(&g_turn, kPeerWait);
  if (!turn.taken() || callback == nullptr || g_holder.load(std::memory_order_relaxed) == Holder::kPeer) {
    return subscribe(callback, user);  // a second peer gets CUPTI's own answer
  }
  WatchForksOnce();
  if (g_holder.load(std::memory_order_relaxed) == Holder::kAgent) {
    GetRealCupti().unsubscribe(g_subscriber.load(std::memory_order_relaxed));
    Forget();
  }
  g_peer_user.store(user, std::memory_order_relaxed);
  g_peer_callback.store(callback, std::memory_order_release);
  int result = subscribe(OnCallback, nullptr);
  if (result != 0) {
    Forget();
    return result;
  }
  g_subscriber.store(*subscriber, std::memory_order_relaxed);
  g_holder.store(Holder::kPeer, std::memory_order_release);
  EnableOurs(GetRealCupti());
  Changed();
  return 0;
}

ATTNTRACE_EXPORT int cuptiSubscribe(void** subscriber, CuptiCallback callback, void* user) {
  const RealCupti& real = GetRealCupti();
  if (!real.found) return kCuptiNotInitialized;
  if (!Sharing()) return real.subscribe(subscriber, callback, user);
  return SubscribePeer(subscriber, callback, user,
                       [&](CuptiCallback as, void* with) { return real.subscribe(subscriber, as, with); });
}

// Since CUDA 13.0; its parameters say who subscribes, and are the peer's.
ATTNTRACE_EXPORT int cuptiSubscribe_v2(void** subscriber, CuptiCallback callback, void* user, void* parameters) {
  const RealCupti& real = GetRealCupti();
  if (!real.found || real.subscribe_v2 == nullptr) return kCuptiNotInitialized;
  if (!Sharing()) return real.subscribe_v2(subscriber, callback, user, parameters);
  return SubscribePeer(subscriber, callback, user,
                       [&](CuptiCallback as, void* with) { return real.subscribe_v2(subscriber, as, with, parameters); });
}

ATTNTRACE_EXPORT int cuptiUnsubscribe(void* subscriber) {
  const RealCupti& real = GetRealCupti();
  if (!real.found) return kCuptiNotInitialized;
  if (!Sharing() || !IsPeers(subscriber)) return real.unsubscribe(subscriber);
  Turn turn(&g_turn, kPeerWait);
  int result = real.unsubscribe(subscriber);
  if (result == 0) Forget();  // the agent asks again when it next needs one
  return result;
}

ATTNTRACE_EXPORT int cuptiEnableCallback(uint32_t enable, void* subscriber, int domain, uint32_t callback) {
  const RealCupti& real = GetRealCupti();
  if (!real.found) return kCuptiNotInitialized;
  if (!Sharing() || !IsPeers(subscriber)) return real.enable_callback(enable, subscriber, domain, callback);
  Turn turn(&g_turn, kPeerWait);
  bool had = g_peers.Has(domain, callback);
  if (enable == 0 && g_ours.Has(domain, callback)) {
    g_peers.Set(domain, callback, false);
    return 0;  // off for the peer; CUPTI goes on calling us
  }
  if (enable != 0) g_peers.Set(domain, callback, true);  // before CUPTI may call
  int result = real.enable_callback(enable, subscriber, domain, callback);
  if (result == 0) {
    g_peers.Set(domain, callback, enable != 0);
  } else {
    g_peers.Set(domain, callback, had);
  }
  return result;
}

ATTNTRACE_EXPORT int cuptiEnableDomain(uint32_t enable, void* subscriber, int domain) {
  const RealCupti& real = GetRealCupti();
  if (!real.found) return kCuptiNotInitialized;
  if (!Sharing() || !IsPeers(subscriber)) return real.enable_domain(enable, subscriber, domain);
  Turn turn(&g_turn, kPeerWait);
  if (enable != 0) g_peers.SetDomain(domain, true);
  int result = real.enable_domain(enable, subscriber, domain);
  if ((result == 0) == (enable == 0)) g_peers.SetDomain(domain, false);
  if (result == 0 && enable == 0) EnableOurs(real);
  return result;
}

ATTNTRACE_EXPORT int cuptiEnableAllDomains(uint32_t enable, void* subscriber) {
  const RealCupti& real = GetRealCupti();
  if (!real.found) return kCuptiNotInitialized;
  if (!Sharing() || !IsPeers(subscriber)) return real.enable_all_domains(enable, subscriber);
  Turn turn(&g_turn, kPeerWait);
  if (enable != 0) g_peers.SetAll(true);
  int result = real.enable_all_domains(enable, subscriber);
  if ((result == 0) == (enable == 0)) g_peers.SetAll(false);
  if (result == 0 && enable == 0) EnableOurs(real);
  return result;
}

ATTNTRACE_EXPORT int cuptiFinalize() {
  const RealCupti& real = GetRealCupti();
  if (!real.found) return kCuptiNotInitialized;
  if (!Sharing()) return real.finalize();
  YieldActivity();
  Turn turn(&g_turn, kPeerWait);
  int result = real.finalize();
  g_ours.SetAll(false);
  Forget();  // whoever held it, CUPTI starts afresh
  return result;
}
