#include "collectors/cupti/launches.h"

#include <mutex>
#include <unordered_map>
#include <vector>

#include "collectors/cupti/abi.h"
#include "collectors/cupti/devices.h"
#include "collectors/cupti/gpu_time.h"
#include "collectors/cupti/graphs.h"
#include "collectors/cupti/past_dispatcher.h"
#include "collectors/cupti/window.h"
#include "collectors/fault.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

constexpr size_t kMostLists = 4;  // of one variant: enough for a first call that differs from the later ones

// Which lists of kernels are in the spool, by slot.
struct Lists {
  std::mutex mutex;
  std::unordered_map<uint32_t, std::vector<uint64_t>> known;
};
Lists& Written() noexcept {
  static auto* const lists = new Lists;
  return *lists;
}

bool InOwnNode(const ThreadState& state) noexcept {
  for (int i = 0; i < state.node_depth && i < ThreadState::kMaxNodes; ++i) {
    const BackwardNode& node = state.nodes[i];
    if (node.sequence >= state.backward.forward.first && node.sequence < state.backward.forward.end &&
        node.forward_thread == state.backward.forward_thread) {
      return true;
    }
  }
  return false;
}

KernelSet* OwnerOf(ThreadState* state) noexcept {
  if (state->call.open) return &state->call.kernels;
  if (state->function_depth > 0) {  // a backward written by hand
    FunctionBackward& own = state->functions[state->function_depth - 1];
    if (own.collects && own.depth == state->node_depth) return &own.kernels;
  }
  if (state->lineage.watched() >= 0) return &state->lineage.candidate(state->lineage.watched()).kernels;
  if (state->finishing >= 0) return &state->lineage.candidate(state->finishing).kernels;
  return state->backward.open && InOwnNode(*state) ? &state->backward.kernels : nullptr;
}

void OnLaunch(const char* name, uint32_t correlation) noexcept {
  ThreadState* const state = CurrentThread();
  if (state != nullptr && state->inline_meter != nullptr) return;  // not the program's
  SpoolWriter& spool = Spool();
  spool.Add(Counter::kKernelLaunches);
  spool.Add(Counter::kKernelLaunchesUnattributed);  // until the call that it belongs to is counted
  CountWatchedLaunch();
  if (state == nullptr || name == nullptr) return;
  const KernelId kernel = InternKernel(name);
  if (KernelSet* const owner = OwnerOf(state); owner != nullptr) {
    owner->Add(kernel);
    if (GpuTimeOn() && owner->token == 0) TimeLaunch(&owner->ticket, correlation);  // what is captured does not run now
  } else {
    OnForeignLaunch(state, kernel, correlation);
  }
}

void OnResource(uint32_t callback, const void* data) noexcept {
  const auto* const resource = static_cast<const cupti::ResourceData*>(data);
  if (resource == nullptr || resource->descriptor == nullptr) return;
  uint64_t token = 0;
  if (callback == cupti::kGraphNodeCreated) {
    ThreadState* const state = CurrentThread();
    const KernelSet* const owner = state != nullptr ? OwnerOf(state) : nullptr;
    token = owner != nullptr ? owner->token : 0;
  }
  OnGraphResource(callback, *static_cast<const cupti::GraphData*>(resource->descriptor), token);
}

void Write(uint32_t slot, const KernelSet& kernels) {
  uint64_t hash = 0x4b;
  for (int i = 0; i < kernels.used; ++i) hash = Mix(Mix(hash, kernels.list[i].kernel), kernels.list[i].launches);
  Lists& lists = Written();
  const std::lock_guard<std::mutex> lock(lists.mutex);
  std::vector<uint64_t>& known = lists.known[slot];
  for (const uint64_t one : known) {
    if (one == hash) return;
  }
  if (known.size() >= kMostLists) return;
  for (int i = 0; i < kernels.used; ++i) {
    const KernelEntry& entry = KernelOf(kernels.list[i].kernel);
    Spool().Append(spool::RecordKind::kKernel, slot,
                   spool::KernelDef{entry.string, kernels.list[i].launches, static_cast<uint32_t>(known.size()), 0});
  }
  known.push_back(hash);
}

}  // namespace

void OnCupti(int domain, uint32_t callback, const void* data) noexcept {
  if (data == nullptr) return;
  if (domain == cupti::kResource) return OnResource(callback, data);
  const auto* const call = static_cast<const cupti::CallbackData*>(data);
  if (call->site != 0) return;
  if (callback == cupti::kGraphLaunch || callback == cupti::kGraphLaunchPerThread) {
    const auto* const launch = static_cast<const cupti::GraphLaunchParameters*>(call->parameters);
    if (launch != nullptr) OnGraphLaunch(launch->executable);
    return;
  }
  OnLaunch(call->symbol_name, call->correlation_id);
}

bool LacksKernels(ThreadState* state, uint64_t key) noexcept {
  const uint8_t* const seen = state->Caches().kernels.Find(key);
  return seen == nullptr || *seen < WantedInstances();
}

void StartKernels(ThreadState* state, KernelSet* kernels, int space, uint64_t key) noexcept {
  kernels->Start(key, 0, 0);
  WantKernels(state, kernels, space, key);
  if (WatchEnabled()) kernels->epoch = WatchEpoch();
}

void NoteCapture(KernelSet* kernels, int space) noexcept {
  if (kernels->token != 0 || space <= 0 || !WatchEnabled() || !IsCapturing(space - 1)) return;
  WatchGraphs();
  kernels->token = NewCapture();
}

void WantKernels(ThreadState* state, KernelSet* kernels, int space, uint64_t key) noexcept {
  kernels->key = key;
  if (space <= 0) return;
  if (!WatchEnabled()) {  // an allocator may report nothing (cudaMallocAsync): then this is the first sign of the device
    OnCudaMemory(space - 1);
    TendWatch();
    if (!WatchEnabled()) return;
  }
  NoteCapture(kernels, space);
  if (LacksKernels(state, key)) {
    WatchNeeded();
  } else {
    WatchSettled();
  }
}

void CountLaunches(uint32_t slot, const KernelSet& kernels, bool whole) noexcept {
  if (slot >= spool::kMaxVariants) return;
  SettleTicket(kernels.ticket, slot);
  SpoolWriter& spool = Spool();
  spool::VariantCounters& counters = spool.counters(slot);
  if (kernels.total != 0) {
    spool.Add(Counter::kKernelLaunchesAttributed, kernels.total);
    spool.Add(Counter::kKernelLaunchesUnattributed, ~uint64_t{0} - kernels.total + 1);
    counters.kernel_launches.fetch_add(kernels.total, std::memory_order_relaxed);
  }
  if (!whole) return;
  counters.kernel_instances.fetch_add(1, std::memory_order_relaxed);
  Guarded("kernels", false, [&] {
    Write(slot, kernels);
    return true;
  });
}

void FinishKernels(ThreadState* state, const KernelSet& kernels, uint32_t slot) noexcept {
  if (kernels.token != 0 && slot < spool::kMaxVariants) NameCapture(kernels.token, slot);
  const bool whole = kernels.epoch != 0 && kernels.epoch == WatchEpoch();
  CountLaunches(slot, kernels, whole);
  if (!WatchEnabled() || slot >= spool::kMaxVariants) return;
  DirectMapped<uint8_t, 512>& known = state->Caches().kernels;
  const uint8_t* const seen = known.Find(kernels.key);
  const int count = (seen != nullptr ? *seen : 0) + (whole ? 1 : 0);
  if (whole && count <= WantedInstances()) known.Put(kernels.key, static_cast<uint8_t>(count));
  // The same inputs may come to another backend (a pinned one): that variant wants its own instances.
  if (!whole && seen != nullptr && Spool().counters(slot).kernel_instances.load(std::memory_order_relaxed) == 0) {
    known.Put(kernels.key, 0);
  }
}

}  // namespace attntrace
