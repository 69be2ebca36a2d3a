// The steps of decoding one spool into the report, each in a file of its own name's concern. Called in this order, once a
// spool, by decode.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "report/decode/definitions.h"
#include "report/decode/intern.h"
#include "report/decode/symbolise.h"
#include "report/report.pb.h"
#include "report/run_facts.h"
#include "report/spool_reader.h"

namespace attntrace {

struct ProcessContext {
  const Spool& spool;
  const Definitions& definitions;
  uint32_t index;                // of its Process in the report
  const std::string& directory;  // of the launcher
  bool replaced;                 // the process went on as another traced program, by exec
};

// process.cc: identity, how it ended, counters, memory.
void DecodeProcess(const ProcessContext& context, Process* process);

// variants.cc: variants with their call paths, and the recent calls, which name variants. Returns the number of calls.
uint64_t DecodeVariants(const ProcessContext& context, Interner* interner, Symboliser* symboliser, Report* report);

// incidents.cc: what happened and was no call.
void DecodeIncidents(const ProcessContext& context, Interner* interner, Symboliser* symboliser, Report* report);

// pinned.cc: "file:line" of the innermost `with sdpa_kernel(...)` or decorator around a call path's lines, as the sources show
// it; empty where there is none or they cannot be read. Files changed after `newest_unix_ns` are not the ones that ran.
std::string FindPin(const Report& report, const CallPath& path, uint64_t newest_unix_ns);

// blind_spots.cc: what this process says, or shows, it has not seen.
void DecodeBlindSpots(const ProcessContext& context, Report* report);

// environment.cc: facts by key, the newest of a key winning.
std::map<std::string, std::string> ReadEnvironment(const Definitions& definitions);
void FillEnvironment(const std::map<std::string, std::string>& facts, Environment* environment);

// facts.cc: of one place, for all its variants.
void ShareFacts(Report* report);

// totals.cc: sums over the finished report.
void FillTotals(Report* report);

}  // namespace attntrace
