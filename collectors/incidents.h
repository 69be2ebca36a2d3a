// What happened in the process and was no call of attention: exceptions, operators that failed, block masks made on the full
// grid.
//
// Any thread, with or without the GIL; takes the spool's lock and one of its own. The same incident again is only counted.
#pragma once

#include <string>
#include <vector>

#include "collectors/call_path.h"
#include "collectors/flex_facts.h"
#include "collectors/variants.h"
#include "tracer/spool/format.h"

namespace attntrace {

struct Incident {
  IncidentKind kind = IncidentKind::kOperator;
  CallSite site;
  std::string type, message;
  const char* op = "";
  uint32_t flags = 0;  // spool::VariantFlags
  uint32_t thread = 0;
  uint32_t leads_to = 0;     // what RecordIncident returned for the exception that this one led to
  uint32_t create_path = 0;  // kPath id
  double dropout_p = 0;
  uint64_t bytes = 0;
  int64_t peak_bytes = 0;
  spool::TensorDef q{}, k{}, v{}, mask{};
  const std::vector<GateText>* gates = nullptr;
  VariantFacts facts;  // keys are those of Incident.facts in report.proto
};

inline constexpr int kMaxIncidents = 64;  // distinct ones

// Slot + 1; 0 where there was no room.
uint32_t RecordIncident(const Incident& incident) noexcept;

// The same incident again, by what RecordIncident returned.
void CountIncident(uint32_t id) noexcept;

// Of an operator's call that threw. `gates` null: not taken.
void RecordFailedCall(const CallRecord& call, uint32_t thread, const std::vector<GateText>* gates) noexcept;

void LockIncidentsForFork() noexcept;
void UnlockIncidentsAfterFork() noexcept;

}  // namespace attntrace
