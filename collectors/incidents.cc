#include "collectors/incidents.h"

#include <mutex>
#include <unordered_map>

#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

std::mutex g_mutex;
std::unordered_map<uint64_t, uint32_t>& Known() noexcept {
  static auto* const known = new std::unordered_map<uint64_t, uint32_t>;
  return *known;
}

uint64_t Hash(uint64_t hash, const std::string& text) noexcept { return Mix(hash, std::hash<std::string>{}(text)); }

uint64_t KeyOf(const Incident& incident) noexcept {
  uint64_t key = Mix(static_cast<uint64_t>(incident.kind) + 1, incident.site.path);
  key = Mix(Mix(key, incident.site.module), incident.leads_to);
  key = Hash(Hash(Hash(key, incident.type), incident.message), incident.op);
  for (const spool::TensorDef* const tensor : {&incident.q, &incident.k}) {
    for (const int64_t size : tensor->sizes) key = Mix(key, static_cast<uint64_t>(size));
  }
  return Mix(key, incident.bytes);
}

void Define(uint32_t slot, const Incident& incident) noexcept {
  SpoolWriter& spool = Spool();
  spool::IncidentDef def{};
  def.kind = incident.kind;
  def.layer = incident.site.layer;
  def.path = incident.site.path;
  def.module = incident.site.module;
  def.thread = incident.thread;
  def.leads_to = incident.leads_to;
  def.type = spool.Intern(incident.type);
  def.message = spool.Intern(incident.message);
  def.op = spool.Intern(incident.op);
  def.no_path_reason = incident.site.no_path_reason != nullptr ? spool.Intern(incident.site.no_path_reason) : 0;
  def.flags = incident.flags;
  def.create_path = incident.create_path;
  def.dropout_p = incident.dropout_p;
  def.bytes = incident.bytes;
  def.q = incident.q;
  def.k = incident.k;
  def.v = incident.v;
  def.mask = incident.mask;
  spool.Append(spool::RecordKind::kIncident, slot, def);
  for (const auto& [key, value] : incident.facts) {
    spool.Append(spool::RecordKind::kFact, slot, spool::FactDef{spool.Intern(key), spool.Intern(value)});
  }
  if (incident.gates == nullptr) return;
  uint16_t order = 0;
  for (const GateText& gate : *incident.gates) {
    const spool::GateDef record{gate.backend, static_cast<uint8_t>(gate.ours ? 1 : 0), order++, spool.Intern(gate.text)};
    spool.Append(spool::RecordKind::kIncidentGate, slot, record);
  }
}

}  // namespace

uint32_t RecordIncident(const Incident& incident) noexcept {
  const uint64_t key = KeyOf(incident);
  SpoolWriter& spool = Spool();
  uint32_t slot = spool::kMaxVariants;
  {
    const std::lock_guard<std::mutex> lock(g_mutex);
    auto& known = Known();
    if (const auto at = known.find(key); at != known.end()) {
      slot = at->second;
    } else if (known.size() < kMaxIncidents) {
      slot = spool.NewSlot();
      if (slot >= spool::kMaxVariants) return 0;
      Define(slot, incident);
      known.emplace(key, slot);
    }
  }
  if (slot >= spool::kMaxVariants) return 0;
  spool::VariantCounters& counters = spool.counters(slot);
  counters.calls.fetch_add(1, std::memory_order_relaxed);
  counters.last_ns.store(spool.SinceStart(), std::memory_order_relaxed);
  if (incident.peak_bytes > counters.peak_bytes.load(std::memory_order_relaxed)) {
    counters.peak_bytes.store(incident.peak_bytes, std::memory_order_relaxed);
  }
  return slot + 1;
}

void CountIncident(uint32_t id) noexcept {
  spool::VariantCounters& counters = Spool().counters(id - 1);
  counters.calls.fetch_add(1, std::memory_order_relaxed);
  counters.last_ns.store(Spool().SinceStart(), std::memory_order_relaxed);
}

void RecordFailedCall(const CallRecord& call, uint32_t thread, const std::vector<GateText>* gates) noexcept {
  Incident incident;
  incident.kind = IncidentKind::kOperator;
  incident.site = call.site;
  // A kernel that had been chosen failed by itself, of memory for one; that is told by its own name.
  incident.op = call.backend == Backend::kUnknown ? call.op : call.kernel_op;
  incident.flags = call.flags;
  incident.thread = thread;
  incident.dropout_p = call.dropout_p;
  incident.q = call.q;
  incident.k = call.k;
  incident.v = call.v;
  incident.mask = call.mask;
  incident.gates = gates;
  RecordIncident(incident);
}

void LockIncidentsForFork() noexcept { g_mutex.lock(); }
void UnlockIncidentsAfterFork() noexcept { g_mutex.unlock(); }

}  // namespace attntrace
