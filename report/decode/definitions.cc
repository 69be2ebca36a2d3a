#include "report/decode/definitions.h"

#include "report/decode/text.h"

namespace attntrace {

using spool::RecordKind;

Definitions::Definitions(const Spool& spool)
    : variants_(spool::kMaxVariants),
      layers_(spool::kMaxVariants),
      gates_(spool::kMaxVariants),
      kernels_(spool::kMaxVariants),
      facts_(spool::kMaxVariants),
      references_(spool::kMaxVariants),
      incident_gates_(spool::kMaxVariants) {
  for (const SpoolRecord& record : spool.records()) Add(record);
}

void Definitions::Add(const SpoolRecord& record) {
  const auto put = [&](auto& map, const auto* def) {
    if (def == nullptr) return void(++malformed_);
    map[record.id] = def;
  };
  const auto append = [&](auto& list, const auto* def) {
    if (def == nullptr) return void(++malformed_);
    list.push_back(def);
  };
  const auto append_to_slot = [&](auto& lists, const auto* def) {
    if (record.id >= lists.size()) return void(++malformed_);
    append(lists[record.id], def);
  };
  switch (record.kind) {
    case RecordKind::kString:
      strings_[record.id] = record.payload;
      break;
    case RecordKind::kFrame:
      put(frames_, record.As<spool::FrameDef>());
      break;
    case RecordKind::kPath: {
      const auto* def = record.As<spool::PathDef>();
      if (def == nullptr || (record.payload.size() - sizeof *def) / sizeof(uint32_t) < def->frames) return void(++malformed_);
      paths_[record.id] = {def->flags, {reinterpret_cast<const uint32_t*>(def + 1), def->frames}};
      break;
    }
    case RecordKind::kModule:
      put(modules_, record.As<spool::ModuleDef>());
      break;
    case RecordKind::kVariant: {
      const auto* def = record.As<spool::VariantDef>();
      if (def == nullptr || record.id >= variants_.size()) return void(++malformed_);
      variants_[record.id] = def;
      break;
    }
    case RecordKind::kLayer:
      append_to_slot(layers_, record.As<spool::LayerDef>());
      break;
    case RecordKind::kGate:
      append_to_slot(gates_, record.As<spool::GateDef>());
      break;
    case RecordKind::kKernel:
      append_to_slot(kernels_, record.As<spool::KernelDef>());
      break;
    case RecordKind::kFact:
      append_to_slot(facts_, record.As<spool::FactDef>());
      break;
    case RecordKind::kReference: {
      const auto* def = record.As<spool::ReferenceDef>();
      if (def == nullptr || record.id >= references_.size() || record.payload.size() - sizeof *def < def->bytes) {
        return void(++malformed_);
      }
      references_[record.id].push_back(record.payload.substr(sizeof *def, def->bytes));
      break;
    }
    case RecordKind::kIncident:
      if (record.id >= spool::kMaxVariants) return void(++malformed_);
      put(incidents_, record.As<spool::IncidentDef>());
      break;
    case RecordKind::kIncidentGate:
      append_to_slot(incident_gates_, record.As<spool::GateDef>());
      break;
    case RecordKind::kEnvironment:
      append(environment_, record.As<spool::EnvironmentDef>());
      break;
    case RecordKind::kThread:
      put(threads_, record.As<spool::ThreadDef>());
      break;
    case RecordKind::kNote:
      append(notes_, record.As<spool::NoteDef>());
      break;
  }
}

std::string Definitions::String(spool::StringId id) const {
  const auto found = strings_.find(id);
  return id == 0 || found == strings_.end() ? std::string() : CleanUtf8(found->second);
}

const Definitions::Path* Definitions::PathOf(uint32_t id) const {
  const auto found = paths_.find(id);
  return id == 0 || found == paths_.end() ? nullptr : &found->second;
}

}  // namespace attntrace
