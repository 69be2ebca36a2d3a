// Variants: everything that makes two calls the same, and the counters kept for each.
//
// A call whose variant its thread has met before is counted without a lock. Defining a new variant takes this table's lock and
// the spool's; never take the GIL inside.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectors/call_path.h"
#include "collectors/flex_facts.h"
#include "collectors/thread_caches.h"
#include "tracer/spool/format.h"

namespace attntrace {

struct GateText {
  Backend backend;
  bool ours;
  std::string text;
};

// What one finished call was. Strings live for ever (operator tables, schemas).
struct CallRecord {
  CallSite site;
  const char* op = "";
  const char* kernel_op = "";
  Phase phase = Phase::kForward;
  Backend backend = Backend::kUnknown;
  PathKind path_kind = PathKind::kUnknown;
  uint32_t flags = 0;         // spool::VariantFlags
  uint32_t forward_slot = 0;  // slot + 1
  MaskKind mask_kind = MaskKind::kNone;
  MaskContent mask_content = MaskContent::kUnread;
  double dropout_p = 0;
  double scale = 0;
  uint64_t mask_bytes = 0;
  spool::TensorDef q{}, k{}, v{}, mask{};
  const std::vector<GateText>* gates = nullptr;  // null: not taken
  const VariantFacts* facts = nullptr;           // null: none

  // What it cost.
  int space = -1;
  int64_t peak_bytes = 0, kept_bytes = 0, score_bytes = 0;
  uint64_t allocated_bytes = 0, host_ns = 0;
};

struct VariantCaches {
  DirectMapped<uint32_t, 512> slots;
  DirectMapped<uint8_t, 1024> layers;     // (slot, layer) pairs that are in the spool
  DirectMapped<uint8_t, 512> signatures;  // calls whose inputs were looked at closely (gates, mask)
};

// Hash of what is known before the call has run: shapes, strides, flags, place. Without the backend.
uint64_t SignatureOf(const CallRecord& call) noexcept;

// Counts the call, defining its variant first where it is new. Returns its slot, or spool::kMaxVariants where there was no
// room.
uint32_t CountCall(VariantCaches* caches, const CallRecord& call, uint32_t thread) noexcept;

void SetMaxShapes(int shapes) noexcept;  // distinct shapes of one place and backend before they are folded into one

void LockVariantsForFork() noexcept;
void UnlockVariantsAfterFork() noexcept;

}  // namespace attntrace
