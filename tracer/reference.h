// Reference runs: asks attntrace-reference for what report/reference/plan.h wants to know, within limits of time and memory,
// and puts the answers into the report. Nothing here can fail a run: what goes wrong is a line in the report.
#pragma once

#include <string>

#include "report/report.pb.h"
#include "tracer/options.h"

namespace attntrace {

struct ReferenceLimits {
  long seconds = 20;         // 0: none
  long memory_percent = 50;  // of what is free
  bool progress = false;     // a line on standard error that is written over
};

// Of the settings reference-budget and reference-memory.
ReferenceLimits LimitsOf(const OptionValues& options);

// Fills report->reference_runs and what follows from them in the findings. Blocks for the time limit at most. Returns why
// nothing could be run (no reference for this PyTorch, ...), empty where that is not so.
std::string RunReferences(const ReferenceLimits& limits, Report* report);

}  // namespace attntrace
