#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/writers/writers.h"

namespace attntrace {
namespace {

std::string Status(const Report& report) {
  const bool traced = std::any_of(report.processes().begin(), report.processes().end(),
                                  [](const Process& process) { return process.tracing() == "traced"; });
  return !traced ? "untraced" : report.findings_size() > 0 ? "findings" : "clean";
}

// Rules in the order of the findings, which is worst first.
std::string CountedRules(const Report& report) {
  std::vector<std::pair<std::string, int>> counts;
  for (const Finding& finding : report.findings()) {
    const auto known = std::find_if(counts.begin(), counts.end(), [&](const auto& one) { return one.first == finding.rule(); });
    if (known == counts.end()) {
      counts.emplace_back(finding.rule(), 1);
    } else {
      ++known->second;
    }
  }
  return counts.empty() ? "-" : absl::StrJoin(counts, ",", absl::PairFormatter(":"));
}

}  // namespace

std::string SummaryLine(const Report& report, const std::string& report_path) {
  const Totals& totals = report.totals();
  return absl::StrCat("SUMMARY status=", Status(report), " findings=", CountedRules(report), " calls=", totals.forward_calls(),
                      "/", totals.backward_calls(), "/", totals.recompute_calls(), " fused=", totals.fused(),
                      " dense=", totals.dense(), " quadratic=", totals.quadratic(), " blind=", report.blind_spots_size(),
                      " peak_cpu=", totals.peak_cpu_bytes(), " peak_cuda=", totals.peak_cuda_bytes(),
                      " report=", report_path.empty() ? "-" : report_path);
}

}  // namespace attntrace
