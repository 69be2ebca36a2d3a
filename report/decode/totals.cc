#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "report/decode/stages.h"
#include "tracer/spool/words.h"

namespace attntrace {
namespace {

uint64_t CounterOf(const Process& process, Counter which) {
  for (const CounterValue& counter : process.counters()) {
    if (counter.name() == NameOf(which)) return counter.value();
  }
  return 0;
}

void CountVariant(const Variant& variant, Totals* totals) {
  const uint64_t n = variant.count();
  if (variant.phase() == NameOf(Phase::kForward)) totals->set_forward_calls(totals->forward_calls() + n);
  if (variant.phase() == NameOf(Phase::kBackward)) totals->set_backward_calls(totals->backward_calls() + n);
  if (variant.phase() == NameOf(Phase::kRecompute)) totals->set_recompute_calls(totals->recompute_calls() + n);
  if (variant.path() == NameOf(PathKind::kFused)) {
    totals->set_fused(totals->fused() + n);
  } else if (variant.path() == NameOf(PathKind::kDense)) {
    totals->set_dense(totals->dense() + n);
  } else if (variant.path() == NameOf(PathKind::kQuadratic)) {
    totals->set_quadratic(totals->quadratic() + n);
  } else {
    totals->set_unknown(totals->unknown() + n);
  }
}

}  // namespace

void FillTotals(Report* report) {
  Totals* totals = report->mutable_totals();
  totals->Clear();
  for (const Variant& variant : report->variants()) CountVariant(variant, totals);

  // Calls of variants that found no slot are known by their number only.
  uint64_t forward = 0, backward = 0, recompute = 0;
  bool dropped = false;
  for (const Process& process : report->processes()) {
    forward += CounterOf(process, Counter::kForwardCalls);
    backward += CounterOf(process, Counter::kBackwardCalls);
    recompute += CounterOf(process, Counter::kRecomputeCalls);
    dropped = dropped || CounterOf(process, Counter::kVariantsDropped) > 0;
    for (const DeviceMemory& memory : process.devices()) {
      if (memory.device() == "cpu") {
        totals->set_peak_cpu_bytes(std::max(totals->peak_cpu_bytes(), memory.peak_bytes()));
      } else if (absl::StartsWith(memory.device(), "cuda")) {
        totals->set_peak_cuda_bytes(std::max(totals->peak_cuda_bytes(), memory.peak_bytes()));
      }
    }
  }
  if (!dropped) return;
  const uint64_t before = totals->forward_calls() + totals->backward_calls() + totals->recompute_calls();
  totals->set_forward_calls(std::max(totals->forward_calls(), forward));
  totals->set_backward_calls(std::max(totals->backward_calls(), backward));
  totals->set_recompute_calls(std::max(totals->recompute_calls(), recompute));
  const uint64_t after = totals->forward_calls() + totals->backward_calls() + totals->recompute_calls();
  totals->set_unknown(totals->unknown() + after - before);
}

}  // namespace attntrace
