#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/decode/frames.h"
#include "report/decode/parts.h"
#include "report/decode/stages.h"

namespace attntrace {
namespace {

using spool::IncidentDef;

template <typename T>
T Value(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
}

void Fill(const ProcessContext& context, uint32_t slot, const IncidentDef& def, Incident* incident) {
  const Definitions& definitions = context.definitions;
  const spool::VariantCounters& counters = context.spool.counters(slot);
  incident->set_process(context.index);
  incident->set_kind(NameOf(def.kind));
  incident->set_type(definitions.String(def.type));
  incident->set_message(definitions.String(def.message));
  incident->set_operator_(definitions.String(def.op));
  incident->set_thread(ThreadName(definitions, def.thread));
  incident->set_count(std::max<uint64_t>(1, Value(counters.calls)));
  incident->set_peak_bytes(Value(counters.peak_bytes));
  incident->set_bytes(static_cast<int64_t>(def.bytes));
  incident->set_causal(def.flags & spool::kCausal);
  incident->set_gqa(def.flags & spool::kGqa);
  incident->set_dropout_p(def.dropout_p);
  if (definitions.Module(def.module) != nullptr) FillModule(definitions, def.module, incident->mutable_module());
  if (def.layer >= 0) incident->add_layers(def.layer);
  AddTensor(def.q, "q", incident->mutable_tensors());
  AddTensor(def.k, "k", incident->mutable_tensors());
  AddTensor(def.v, "v", incident->mutable_tensors());
  AddTensor(def.mask, "mask", incident->mutable_tensors());
  FillGates(definitions, definitions.IncidentGates(slot), incident->mutable_gates());
  for (const spool::FactDef* fact : definitions.Facts(slot)) {
    (*incident->mutable_facts())[definitions.String(fact->key)] = definitions.String(fact->value);
  }
}

}  // namespace

void DecodeIncidents(const ProcessContext& context, Interner* interner, Symboliser* symboliser, Report* report) {
  const Definitions& definitions = context.definitions;
  FrameDecoder frames(definitions, context.directory, interner, symboliser);
  const uint64_t newest = report->run().start_unix_ns() + report->run().duration_ns();
  std::vector<uint32_t> ids(definitions.variant_slots());
  uint32_t next = static_cast<uint32_t>(report->incidents_size());
  for (uint32_t slot = 0; slot < ids.size(); ++slot) {
    if (definitions.Incident(slot) != nullptr) ids[slot] = ++next;
  }
  for (uint32_t slot = 0; slot < ids.size(); ++slot) {
    const IncidentDef* def = definitions.Incident(slot);
    if (def == nullptr) continue;
    Incident* incident = report->add_incidents();
    incident->set_id(ids[slot]);
    Fill(context, slot, *def, incident);
    incident->set_call_path(frames.Path(def->path));
    incident->set_created_at(frames.Path(def->create_path));
    if (const spool::ModuleDef* const module = definitions.Module(def->module); module != nullptr) {
      incident->mutable_module()->set_built_at(frames.Path(module->built_path));
    }
    if (def->leads_to != 0 && def->leads_to <= ids.size()) incident->set_leads_to(ids[def->leads_to - 1]);
    if (incident->call_path() != 0 && (def->kind != IncidentKind::kBlockMask)) {
      incident->set_pinned_at(FindPin(*report, report->call_paths(static_cast<int>(incident->call_path()) - 1), newest));
    }
  }
}

}  // namespace attntrace
