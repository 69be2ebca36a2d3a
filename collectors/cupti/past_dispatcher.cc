#include "collectors/cupti/past_dispatcher.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "collectors/calls.h"
#include "collectors/cupti/gpu_time.h"
#include "collectors/cupti/launches.h"
#include "collectors/cupti/window.h"
#include "collectors/fault.h"
#include "collectors/spool_writer.h"
#include "collectors/tensors.h"

namespace attntrace {

struct PastDispatcher {
  struct Call {
    KernelId kernel;
    int64_t sequence = -1;  // of the compiled autograd function that ran it, -1 none
    uint32_t ticket = 0;    // its device time
  };
  struct Region {
    uint64_t key = 0, epoch = 0, start_ns = 0;
    int64_t sequence = -1;
    uint32_t launches = 0;  // foreign ones, attention or not
    int tensors = 0;
    spool::TensorDef inputs[3] = {};  // q, k, v, if the region is an attention and nothing else
    Meter meter;
    std::vector<Call> calls;
  };
  struct Node {
    bool open = false;
    int depth = 0;
    uint64_t key = 0, epoch = 0, start_ns = 0;
    uint32_t launches = 0;
    Meter meter;
    std::vector<Call> calls;
    std::vector<ForwardCall> forwards;  // newest first
  };
  static constexpr int kMaxRegions = 8;
  static constexpr size_t kMaxCalls = 1024;
  Region regions[kMaxRegions];
  int depth = 0;
  Node node;
  std::vector<Call> loose;

  Region* Top() noexcept { return depth > 0 && depth <= kMaxRegions ? &regions[depth - 1] : nullptr; }
};

namespace {

// With so few kernels a region is an attention with what surrounds it, and its memory and inputs are the attention's.
constexpr uint32_t kAloneForward = 6, kAloneBackward = 8;

// What a region, or the backward of its calls, was seen to launch.
struct Facts {
  int seen = 0;  // whole instances
  std::vector<KernelId> calls;
  bool alone = false;
};
struct Table {
  std::mutex mutex;
  std::unordered_map<uint64_t, Facts> facts;
};
Table& All() noexcept {
  static auto* const table = new Table;
  return *table;
}

Facts Look(uint64_t key) {
  Table& table = All();
  const std::lock_guard<std::mutex> lock(table.mutex);
  const auto found = table.facts.find(key);
  return found != table.facts.end() ? found->second : Facts{};
}

void Learn(uint64_t key, std::vector<KernelId> calls, bool alone) {
  Table& table = All();
  const std::lock_guard<std::mutex> lock(table.mutex);
  Facts& facts = table.facts[key];
  ++facts.seen;
  facts.calls = std::move(calls);
  facts.alone = alone;
}

PastDispatcher& Past(ThreadState* state) {
  if (state->past == nullptr) state->past = std::make_shared<PastDispatcher>();
  return *state->past;
}

// A kind whose instances are counted from what was learned, once enough were watched.
void StartWatching(const Facts& facts) noexcept {
  if (facts.seen < WantedInstances()) {
    WatchNeeded();
  } else {
    WatchSettled();
  }
}

int CurrentSpace() noexcept {
  try {
    const auto* const cuda = c10::impl::device_guard_impl_registry[static_cast<size_t>(at::kCUDA)].load();
    return cuda != nullptr ? MemorySpace(DeviceKind::kCuda, cuda->getDevice().index()) : -1;
  } catch (...) {  // no device can be asked: the driver is going away
    return -1;
  }
}

// A launch that was seen belongs to the call; one that is only known from earlier was not seen.
void CountKernel(uint32_t slot, const PastDispatcher::Call& call, bool seen, bool whole) noexcept {
  if (!seen) return;
  KernelSet kernels;
  kernels.Start(0, 0, 0);
  kernels.Add(call.kernel);
  kernels.ticket = call.ticket;
  CountLaunches(slot, kernels, whole);
}

CallRecord ForwardRecord(const ThreadState& state, const CallSite& site, KernelId kernel) {
  const KernelEntry& entry = KernelOf(kernel);
  CallRecord record;
  record.site = site;
  record.op = entry.facts.backend == Backend::kFlexTriton ? "flex_attention" : entry.facts.library;
  record.kernel_op = entry.name;
  record.phase = ForwardPhase(state);
  record.backend = entry.facts.backend;
  record.path_kind = PathKind::kFused;
  record.space = CurrentSpace();
  if (at::GradMode::is_enabled()) record.flags |= spool::kGradMode;
  return record;
}

// Inputs that can be the q, k and v of one attention: 4 dimensions, the same batch and head size, k as long as v.
bool AreAttention(const PastDispatcher::Region& region) noexcept {
  if (region.tensors < 3) return false;
  const auto& [q, k, v] = region.inputs;
  return q.sizes[0] == k.sizes[0] && k.sizes[0] == v.sizes[0] && k.sizes[1] == v.sizes[1] && k.sizes[2] == v.sizes[2] &&
         q.sizes[3] == k.sizes[3] && k.sizes[1] != 0 && q.sizes[1] % k.sizes[1] == 0;
}

void CountForward(ThreadState* state, const PastDispatcher::Region& region, const CallSite& site,
                  const PastDispatcher::Call& call, bool alone, bool seen, bool whole) {
  CallRecord record = ForwardRecord(*state, site, call.kernel);
  int64_t elements = 0;
  if (alone) {
    record.host_ns = ElapsedSince(region.start_ns);
    TakeMeter(*state, region.meter, &record);
    if (AreAttention(region)) {
      record.q = region.inputs[0];
      record.k = region.inputs[1];
      record.v = region.inputs[2];
      elements = record.q.sizes[0] * record.q.sizes[1] * record.q.sizes[2] * record.k.sizes[2];
    }
  }
  const int64_t outer = state->compiled_function;
  state->compiled_function = call.sequence;
  const uint32_t slot = CommitForward(state, record, -1, -1, elements);
  state->compiled_function = outer;
  CountKernel(slot, call, seen, whole);
}

std::vector<KernelId> KernelsOf(const std::vector<PastDispatcher::Call>& calls) {
  std::vector<KernelId> kernels;
  for (const PastDispatcher::Call& call : calls) kernels.push_back(call.kernel);
  return kernels;
}

}  // namespace

void OnForeignLaunch(ThreadState* state, KernelId kernel, uint32_t correlation) noexcept {
  if (state->inside) return;
  const KernelFacts& facts = KernelOf(kernel).facts;
  const bool attention = facts.kind == KernelKind::kFused;
  if (!attention && state->past == nullptr) return;
  Guarded("kernels", false, [&] {
    PastDispatcher& past = Past(state);
    PastDispatcher::Call call{kernel};
    if (attention && GpuTimeOn()) TimeLaunch(&call.ticket, correlation);
    if (past.node.open && state->node_depth > past.node.depth) {
      ++past.node.launches;
      if (attention && past.node.calls.size() < PastDispatcher::kMaxCalls) past.node.calls.push_back(call);
    } else if (PastDispatcher::Region* const region = past.Top(); region != nullptr) {
      ++region->launches;
      call.sequence = state->compiled_function;
      if (attention && region->calls.size() < PastDispatcher::kMaxCalls) region->calls.push_back(call);
    } else if (attention && past.loose.size() < PastDispatcher::kMaxCalls) {
      past.loose.push_back(call);
      state->loose_calls = true;
    }
    return true;
  });
}

bool BeginRegion(ThreadState* state, const char* name) {
  if (!WatchEnabled()) return false;
  PastDispatcher& past = Past(state);
  if (++past.depth > PastDispatcher::kMaxRegions) return true;
  PastDispatcher::Region& region = *past.Top();
  region.key = 0x7261;
  for (const char* at = name; *at != 0; ++at) region.key = Mix(region.key, static_cast<uint8_t>(*at));
  region.sequence = -1;
  region.launches = 0;
  region.tensors = 0;
  region.calls.clear();
  region.start_ns = MonotonicNs();
  const Facts facts = Look(region.key);
  StartWatching(facts);
  region.epoch = WatchEpoch();
  region.meter.space = -1;
  if (facts.seen == 0 || facts.alone) state->memory.Open(&region.meter, CurrentSpace(), 0);
  return true;
}

void EndRegion(ThreadState* state) {
  PastDispatcher& past = *state->past;
  if (past.depth-- > PastDispatcher::kMaxRegions) return;
  PastDispatcher::Region& region = past.regions[past.depth];
  const bool whole = region.epoch != 0 && region.epoch == WatchEpoch();
  bool alone = region.calls.size() == 1 && region.launches <= kAloneForward;
  std::vector<PastDispatcher::Call> calls = std::move(region.calls);
  region.calls.clear();
  if (whole) {
    Learn(region.key, KernelsOf(calls), alone);
  } else {
    const Facts facts = Look(region.key);
    if (facts.seen > 0) {  // a window that opened or closed meanwhile saw a part; what was learned is the whole
      alone = facts.alone;
      calls.clear();
      for (const KernelId kernel : facts.calls) calls.push_back({kernel, region.sequence});
    }
  }
  if (!calls.empty()) {
    const Inside ours(state);
    const CallSite site = Where(&state->Caches().paths, true);
    for (const PastDispatcher::Call& call : calls) {
      if (KernelOf(call.kernel).facts.phase == Phase::kForward) CountForward(state, region, site, call, alone, whole, whole);
    }
  }
  if (region.meter.space >= 0) state->memory.Close(&region.meter);
}

void NoteCompiledFunction(ThreadState* state, const at::RecordFunction& event) {
  PastDispatcher::Region* const region = state->past != nullptr ? state->past->Top() : nullptr;
  if (region == nullptr) return;
  region->sequence = event.seqNr();
  for (const c10::IValue& value : event.inputs()) {
    if (region->tensors == 3) break;
    if (KindOf(value) != TensorKind::kPlain || value.toTensor().dim() != 4 || !value.toTensor().is_floating_point()) continue;
    region->inputs[region->tensors++] = Describe(value.toTensor());
  }
}

void BeginCompiledNode(ThreadState* state, const BackwardNode& opened) {
  if (!WatchEnabled()) return;
  PastDispatcher& past = Past(state);
  if (past.node.open) return;
  PastDispatcher::Node& node = past.node;
  node.forwards.clear();
  node.calls.clear();
  node.launches = 0;
  ForwardTable* const table = ForwardsOf(opened.forward_thread);
  ForwardCall forward;
  for (int n = 0; table != nullptr && opened.sequence >= 0 && table->FindInside(opened.sequence, n, &forward); ++n) {
    // Inductor's own templates, and FlashAttention-4 in their place.
    if (forward.backend == Backend::kFlexTriton || forward.backend == Backend::kFlashAttn4) node.forwards.push_back(forward);
  }
  node.key = 0x6e6f;
  for (const ForwardCall& one : node.forwards) node.key = Mix(node.key, one.slot + 1);
  node.open = true;
  node.depth = state->node_depth - 1;
  node.start_ns = MonotonicNs();
  node.meter.space = -1;
  node.epoch = 0;
  if (node.forwards.empty()) return;
  const Facts facts = Look(node.key);
  StartWatching(facts);
  node.epoch = WatchEpoch();
  if (facts.seen == 0 || facts.alone) state->memory.Open(&node.meter, node.forwards[0].space, node.forwards[0].score_elements);
}

void EndCompiledNode(ThreadState* state, const BackwardNode& closed) {
  if (state->past == nullptr || !state->past->node.open || state->past->node.depth != state->node_depth) return;
  PastDispatcher::Node& node = state->past->node;
  node.open = false;
  const bool whole = node.epoch != 0 && node.epoch == WatchEpoch();
  std::erase_if(node.calls,
                [](const PastDispatcher::Call& call) { return KernelOf(call.kernel).facts.phase != Phase::kBackward; });
  bool alone = node.calls.size() == 1 && node.launches <= kAloneBackward;
  bool seen = true;
  if (whole) {
    Learn(node.key, KernelsOf(node.calls), alone);
  } else if (!node.forwards.empty()) {
    const Facts facts = Look(node.key);
    if (facts.seen > 0) {
      node.calls.clear();
      for (const KernelId kernel : facts.calls) node.calls.push_back({kernel});
      alone = facts.alone;
      seen = false;
    }
  }
  const Inside ours(state);
  for (size_t i = 0; i < node.calls.size(); ++i) {
    const KernelEntry& entry = KernelOf(node.calls[i].kernel);
    CallRecord record;
    record.phase = Phase::kBackward;
    record.kernel_op = entry.name;
    record.backend = entry.facts.backend;
    record.path_kind = PathKind::kFused;
    record.space = CurrentSpace();
    if (i < node.forwards.size()) {
      const ForwardCall& forward = node.forwards[i];
      record.site = forward.site;
      record.op = forward.op;
      record.forward_slot = forward.slot + 1;
      record.q = forward.q;
      record.k = forward.k;
    } else {
      record.op = entry.facts.backend == Backend::kFlexTriton ? "flex_attention" : entry.facts.library;
      record.site.no_path_reason = "backward of a forward that was not seen";
      Spool().Add(Counter::kBackwardUnmatched);
    }
    if (alone) {
      record.host_ns = ElapsedSince(node.start_ns);
      TakeMeter(*state, node.meter, &record);
    }
    const uint32_t slot = CountCall(&state->Caches().variants, record, ThreadId(state));
    CountKernel(slot, node.calls[i], seen, whole);
  }
  if (node.meter.space >= 0) state->memory.Close(&node.meter);
}

void CountLooseCalls(ThreadState* state) {
  state->loose_calls = false;
  if (state->past == nullptr) return;
  const std::vector<PastDispatcher::Call> loose = std::move(state->past->loose);
  state->past->loose.clear();
  static std::atomic<bool> noted{false};
  if (!noted.exchange(true, std::memory_order_relaxed)) {
    Spool().Note("past-dispatcher",
                 "attention was launched past PyTorch's dispatcher: such calls are counted only while launches are watched");
  }
  const Inside ours(state);
  const CallSite site = Where(&state->Caches().paths, state->compiled_depth);
  for (const PastDispatcher::Call& call : loose) {
    CallRecord record = ForwardRecord(*state, site, call.kernel);
    if (KernelOf(call.kernel).facts.phase == Phase::kBackward) record.phase = Phase::kBackward;
    CountKernel(CountCall(&state->Caches().variants, record, ThreadId(state)), call, true, true);
  }
}

}  // namespace attntrace
