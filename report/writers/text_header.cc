#include <algorithm>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/writers/text_parts.h"

namespace attntrace {
namespace {

constexpr char kName[] = "attntrace  ";

std::string Verdict(const TextContext& context) {
  const Report& report = context.report;
  std::set<uint32_t> active;
  for (const Variant& variant : report.variants()) active.insert(variant.process());
  const auto traced = static_cast<uint64_t>(std::count_if(report.processes().begin(), report.processes().end(),
                                                          [](const Process& p) { return p.tracing() == "traced"; }));
  if (traced == 0) return context.paint.Bold("nothing was traced");
  if (active.empty()) {
    return absl::StrCat(context.paint.Bold("no attention ran"), " in ", Count(traced, "process", "processes"), " with PyTorch");
  }
  std::string worst;
  uint64_t findings = 0;
  for (const Finding& finding : report.findings()) {
    if (IsBlindSpotFinding(finding)) continue;
    if (findings++ == 0) worst = finding.severity();
  }
  const std::string where = absl::StrCat(" in ", Count(active.size(), "process", "processes"));
  if (findings == 0) return absl::StrCat(context.paint.Bold("no findings"), where);
  return absl::StrCat(context.paint.Severity(worst, Count(findings, "finding", "findings")), where);
}

std::string Devices(const Report& report) {
  if (report.environment().devices_size() > 0) {
    const auto& devices = report.environment().devices();
    const std::set<std::string> names(devices.begin(), devices.end());
    return absl::StrJoin(names, ", ");
  }
  for (const Variant& variant : report.variants()) {
    for (const Tensor& tensor : variant.tensors()) {
      if (tensor.device() != "cpu") return tensor.device();
    }
  }
  return report.variants_size() > 0 ? "CPU" : "";
}

}  // namespace

void AppendHeader(const TextContext& context, std::string* out) {
  const Report& report = context.report;
  const Totals& totals = report.totals();
  std::vector<std::string> parts = {Verdict(context)};
  const uint64_t calls = totals.forward_calls() + totals.backward_calls() + totals.recompute_calls();
  if (calls > 0) parts.push_back(Count(calls, "call", "calls"));
  const Environment& environment = report.environment();
  if (!environment.torch().empty()) parts.push_back("torch " + Printable(environment.torch()));
  if (!environment.transformers().empty()) parts.push_back("transformers " + Printable(environment.transformers()));
  if (const std::string devices = Devices(report); !devices.empty()) parts.push_back(Printable(devices));
  if (report.run().ended() == "signal") {
    const int number = report.run().signal();
    const char* name = sigabbrev_np(number);
    parts.push_back(absl::StrCat("killed by ", name != nullptr ? absl::StrCat("SIG", name) : absl::StrCat("signal ", number)));
  } else if (report.run().ended() == "exit" && report.run().exit_code() != 0) {
    parts.push_back(absl::StrCat("exit ", report.run().exit_code()));
  }

  // Broken between the parts only: "torch" stays with its version.
  std::string line = context.paint.Bold("attntrace") + "  ";
  int columns = DisplayWidth(kName);
  for (size_t i = 0; i < parts.size(); ++i) {
    const int width = i == 0 ? 0 : DisplayWidth(parts[i]);  // the verdict, perhaps in colour, always comes on the first line
    if (i > 0 && columns + 3 + width > context.width()) {
      absl::StrAppend(out, line, "\n");
      line = std::string(sizeof kName - 1, ' ');
      columns = sizeof kName - 1;
    } else if (i > 0) {
      line += " · ";
      columns += 3;
    }
    line += parts[i];
    columns += i == 0 ? DisplayWidth(Verdict({report, context.options, Paint(false), context.sources})) : width;
  }
  absl::StrAppend(out, line, "\n");
}

}  // namespace attntrace
