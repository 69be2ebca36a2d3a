// The definition log of one spool, looked up by id. Views into the Spool, which must outlive it. Ids that nothing defines, and
// payloads too short for their kind, are missing rather than an error: the log of a killed process ends anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "report/spool_reader.h"

namespace attntrace {

class Definitions {
 public:
  explicit Definitions(const Spool& spool);

  // As UTF-8; empty for id 0 and for an unknown id.
  std::string String(spool::StringId id) const;
  const spool::FrameDef* Frame(uint32_t id) const { return Find(frames_, id); }
  const spool::ModuleDef* Module(uint32_t id) const { return Find(modules_, id); }
  const spool::ThreadDef* Thread(uint32_t id) const { return Find(threads_, id); }

  struct Path {
    uint32_t flags = 0;
    absl::Span<const uint32_t> frames;  // innermost first
  };
  const Path* PathOf(uint32_t id) const;

  // Null for a slot without a kVariant record.
  const spool::VariantDef* Variant(uint32_t slot) const { return slot < variants_.size() ? variants_[slot] : nullptr; }
  uint32_t variant_slots() const { return static_cast<uint32_t>(variants_.size()); }

  // Of one slot, in the order of the log.
  absl::Span<const spool::LayerDef* const> Layers(uint32_t slot) const { return Of(layers_, slot); }
  absl::Span<const spool::GateDef* const> Gates(uint32_t slot) const { return Of(gates_, slot); }
  absl::Span<const spool::KernelDef* const> Kernels(uint32_t slot) const { return Of(kernels_, slot); }

  absl::Span<const spool::FactDef* const> Facts(uint32_t slot) const { return Of(facts_, slot); }
  absl::Span<const absl::string_view> References(uint32_t slot) const {
    return slot < references_.size() ? absl::MakeConstSpan(references_[slot]) : absl::Span<const absl::string_view>();
  }
  // Null for a slot that is no incident's.
  const spool::IncidentDef* Incident(uint32_t slot) const { return Find(incidents_, slot); }
  absl::Span<const spool::GateDef* const> IncidentGates(uint32_t slot) const { return Of(incident_gates_, slot); }

  absl::Span<const spool::EnvironmentDef* const> environment() const { return environment_; }
  absl::Span<const spool::NoteDef* const> notes() const { return notes_; }
  // All frames, in no order.
  const absl::flat_hash_map<uint32_t, const spool::FrameDef*>& frames() const { return frames_; }

  uint64_t malformed() const { return malformed_; }  // records left out

 private:
  template <typename T>
  static const T* Find(const absl::flat_hash_map<uint32_t, const T*>& map, uint32_t id) {
    const auto found = map.find(id);
    return found == map.end() ? nullptr : found->second;
  }
  template <typename T>
  static absl::Span<const T* const> Of(const std::vector<std::vector<const T*>>& lists, uint32_t slot) {
    return slot < lists.size() ? absl::Span<const T* const>(lists[slot]) : absl::Span<const T* const>();
  }
  void Add(const SpoolRecord& record);

  absl::flat_hash_map<uint32_t, absl::string_view> strings_;
  absl::flat_hash_map<uint32_t, const spool::FrameDef*> frames_;
  absl::flat_hash_map<uint32_t, const spool::ModuleDef*> modules_;
  absl::flat_hash_map<uint32_t, const spool::ThreadDef*> threads_;
  absl::flat_hash_map<uint32_t, Path> paths_;
  std::vector<const spool::VariantDef*> variants_;
  std::vector<std::vector<const spool::LayerDef*>> layers_;
  std::vector<std::vector<const spool::GateDef*>> gates_;
  std::vector<std::vector<const spool::KernelDef*>> kernels_;
  std::vector<std::vector<const spool::FactDef*>> facts_;
  std::vector<std::vector<absl::string_view>> references_;
  absl::flat_hash_map<uint32_t, const spool::IncidentDef*> incidents_;
  std::vector<std::vector<const spool::GateDef*>> incident_gates_;
  std::vector<const spool::EnvironmentDef*> environment_;
  std::vector<const spool::NoteDef*> notes_;
  uint64_t malformed_ = 0;
};

}  // namespace attntrace
