#include "collectors/variants.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "collectors/memory.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

using spool::TensorDef;

struct Table {
  std::mutex mutex;
  std::unordered_map<uint64_t, uint32_t> slots;
  std::unordered_map<uint64_t, int> shapes;  // by place and backend: how many variants
  std::unordered_set<uint64_t> layers;
};

Table& All() noexcept {
  static Table* const table = new Table;
  return *table;
}

int g_max_shapes = 64;

uint64_t HashShape(uint64_t hash, const TensorDef& tensor) noexcept {
  if (tensor.present == 0) return Mix(hash, 0x9d);
  for (int i = 0; i < std::min<int>(tensor.rank, spool::kMaxDims); ++i) {
    hash = Mix(hash, static_cast<uint64_t>(tensor.sizes[i]));
    hash = Mix(hash, static_cast<uint64_t>(tensor.strides[i]));
  }
  return hash;
}

uint64_t HashKind(uint64_t hash, const TensorDef& tensor) noexcept {
  return Mix(hash, static_cast<uint64_t>(tensor.present) | static_cast<uint64_t>(tensor.dtype) << 8 |
                       static_cast<uint64_t>(tensor.device) << 16 |
                       static_cast<uint64_t>(static_cast<uint8_t>(tensor.device_index)) << 24 |
                       static_cast<uint64_t>(tensor.requires_grad) << 32 | static_cast<uint64_t>(tensor.rank) << 40 |
                       static_cast<uint64_t>(tensor.nested) << 48);
}

uint64_t Bits(double value) noexcept {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Where and how, without shapes.
uint64_t PlaceOf(const CallRecord& call) noexcept {
  uint64_t hash = Mix(Mix(0x51, call.site.path), call.site.module);
  hash = Mix(hash, reinterpret_cast<uintptr_t>(call.op));
  hash = Mix(hash, static_cast<uint64_t>(call.phase) | static_cast<uint64_t>(call.mask_kind) << 8 |
                       static_cast<uint64_t>(call.flags & ~spool::kShapesFolded) << 16);
  hash = Mix(hash, call.forward_slot);
  hash = Mix(Mix(hash, Bits(call.dropout_p)), Bits(call.flags & spool::kScaleGiven ? call.scale : 0));
  for (const TensorDef* tensor : {&call.q, &call.k, &call.v, &call.mask}) hash = HashKind(hash, *tensor);
  return hash;
}

uint64_t WithShapes(uint64_t hash, const CallRecord& call) noexcept {
  for (const TensorDef* tensor : {&call.q, &call.k, &call.v, &call.mask}) hash = HashShape(hash, *tensor);
  return hash;
}

uint64_t WithBackend(uint64_t hash, const CallRecord& call) noexcept {
  return Mix(hash, static_cast<uint64_t>(call.backend) << 8 | static_cast<uint64_t>(call.path_kind));
}

uint32_t Define(const CallRecord& call, uint32_t thread, uint32_t flags) noexcept {  // under the lock
  SpoolWriter& spool = Spool();
  const uint32_t slot = spool.NewSlot();
  if (slot == spool::kMaxVariants) return slot;
  spool::VariantDef def{};
  def.path = call.site.path;
  def.module = call.site.module;
  def.thread = thread;
  def.forward_slot = call.forward_slot;
  def.op = spool.Intern(call.op);
  def.kernel_op = spool.Intern(call.kernel_op);
  def.no_path_reason = call.site.no_path_reason != nullptr ? spool.Intern(call.site.no_path_reason) : 0;
  def.flags = flags | (call.gates != nullptr ? spool::kGatesTaken : 0u);
  def.phase = call.phase;
  def.backend = call.backend;
  def.path_kind = call.path_kind;
  def.mask_kind = call.mask_kind;
  def.mask_content = call.mask_content;
  def.dropout_p = call.dropout_p;
  def.scale = call.scale;
  def.mask_bytes = call.mask_bytes;
  def.q = call.q;
  def.k = call.k;
  def.v = call.v;
  def.mask = call.mask;
  spool.Append(spool::RecordKind::kVariant, slot, def);
  if (call.facts != nullptr) {
    for (const auto& [key, value] : *call.facts) {
      spool.Append(spool::RecordKind::kFact, slot, spool::FactDef{spool.Intern(key), spool.Intern(value)});
    }
  }
  if (call.gates != nullptr) {
    uint16_t order = 0;
    for (const GateText& gate : *call.gates) {
      const spool::GateDef record{gate.backend, static_cast<uint8_t>(gate.ours ? 1 : 0), order++, spool.Intern(gate.text)};
      spool.Append(spool::RecordKind::kGate, slot, record);
    }
  }
  return slot;
}

uint32_t FindOrDefine(const CallRecord& call, uint32_t thread, uint64_t key) noexcept {
  Table& table = All();
  const std::lock_guard<std::mutex> lock(table.mutex);
  if (const auto known = table.slots.find(key); known != table.slots.end()) return known->second;
  const uint64_t place = WithBackend(PlaceOf(call), call);
  int& shapes = table.shapes[place];
  uint64_t folded_key = key;
  uint32_t flags = call.flags;
  if (shapes >= g_max_shapes) {
    folded_key = Mix(place, 0xf01d);
    flags |= spool::kShapesFolded;
    Spool().Add(Counter::kVariantsFolded);
    if (const auto known = table.slots.find(folded_key); known != table.slots.end()) return known->second;
  } else {
    ++shapes;
  }
  const uint32_t slot = Define(call, thread, flags);
  table.slots.emplace(folded_key, slot);
  return slot;
}

void NoteLayer(VariantCaches* caches, uint32_t slot, int32_t layer) noexcept {
  const uint64_t key = Mix(slot + 1, static_cast<uint64_t>(layer) + 1);
  if (caches->layers.Find(key) != nullptr) return;
  caches->layers.Put(key, 1);
  Table& table = All();
  const std::lock_guard<std::mutex> lock(table.mutex);
  if (table.layers.insert(key).second) Spool().Append(spool::RecordKind::kLayer, slot, spool::LayerDef{layer, 0});
}

template <typename T>
void RaiseTo(std::atomic<T>* at, T value) noexcept {
  T seen = at->load(std::memory_order_relaxed);
  while (value > seen && !at->compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

Counter PhaseCounter(Phase phase) noexcept {
  switch (phase) {
    case Phase::kBackward:
      return Counter::kBackwardCalls;
    case Phase::kRecompute:
      return Counter::kRecomputeCalls;
    default:
      return Counter::kForwardCalls;
  }
}

}  // namespace

void SetMaxShapes(int shapes) noexcept { g_max_shapes = std::clamp(shapes, 1, 1024); }

uint64_t SignatureOf(const CallRecord& call) noexcept { return WithShapes(PlaceOf(call), call); }

uint32_t CountCall(VariantCaches* caches, const CallRecord& call, uint32_t thread) noexcept {
  SpoolWriter& spool = Spool();
  const uint64_t key = WithBackend(SignatureOf(call), call);
  uint32_t slot;
  if (const uint32_t* const known = caches->slots.Find(key); known != nullptr) {
    slot = *known;
  } else {
    slot = FindOrDefine(call, thread, key);
    caches->slots.Put(key, slot);
  }
  spool.Add(PhaseCounter(call.phase));
  CountAttributed(call.space, call.allocated_bytes);
  if (slot >= spool::kMaxVariants) return slot;
  spool::VariantCounters& counters = spool.counters(slot);
  const uint64_t now = spool.SinceStart();
  if (counters.calls.fetch_add(1, std::memory_order_relaxed) == 0) counters.first_ns.store(now, std::memory_order_relaxed);
  counters.last_ns.store(now, std::memory_order_relaxed);
  RaiseTo(&counters.peak_bytes, call.peak_bytes);
  RaiseTo(&counters.score_bytes, call.score_bytes);
  counters.last_peak_bytes.store(call.peak_bytes, std::memory_order_relaxed);
  counters.kept_bytes.store(call.kept_bytes, std::memory_order_relaxed);
  counters.allocated_bytes.fetch_add(call.allocated_bytes, std::memory_order_relaxed);
  counters.host_ns.fetch_add(call.host_ns, std::memory_order_relaxed);
  if (call.k.rank >= 2) {
    const int64_t columns = call.k.sizes[std::min<int>(call.k.rank, spool::kMaxDims) - 2];
    int64_t least = counters.min_seq_kv.load(std::memory_order_relaxed);
    while ((least == 0 || columns < least) &&
           !counters.min_seq_kv.compare_exchange_weak(least, columns, std::memory_order_relaxed)) {
    }
    RaiseTo(&counters.max_seq_kv, columns);
  }
  if (call.site.layer >= 0) NoteLayer(caches, slot, call.site.layer);
  spool::Event event{};
  event.end_ns = now;
  event.slot = slot;
  event.thread = thread;
  event.peak_bytes = call.peak_bytes;
  event.live_bytes = LiveBytes(call.space);
  event.host_ns = call.host_ns;
  event.layer = call.site.layer;
  spool.PushEvent(event);
  return slot;
}

void LockVariantsForFork() noexcept { All().mutex.lock(); }
void UnlockVariantsAfterFork() noexcept { All().mutex.unlock(); }

}  // namespace attntrace
