#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/text_units.h"
#include "report/writers/text_parts.h"

namespace attntrace {
namespace {

constexpr size_t kMostProcesses = 8;

struct Calls {
  uint64_t forward = 0, backward = 0, recompute = 0;
};

std::map<uint32_t, Calls> CallsByProcess(const Report& report) {
  std::map<uint32_t, Calls> calls;
  for (const Variant& variant : report.variants()) {
    Calls& sum = calls[variant.process()];
    (variant.phase() == "backward"    ? sum.backward
     : variant.phase() == "recompute" ? sum.recompute
                                      : sum.forward) += variant.count();
  }
  return calls;
}

std::string ProcessLine(const Process& process, const Calls& calls) {
  std::string name = absl::StrCat(process.pid());
  if (process.rank() >= 0) absl::StrAppend(&name, ", rank ", process.rank());
  std::vector<std::string> peaks;
  for (const DeviceMemory& memory : process.devices()) {
    if (memory.peak_bytes() > 0) peaks.push_back(absl::StrCat(memory.device(), " ", FormatBytes(memory.peak_bytes())));
  }
  return absl::StrCat(
      PadRight(name, 18), PadRight(absl::StrCat(calls.forward, "/", calls.backward, "/", calls.recompute, " calls"), 24),
      peaks.empty() ? "" : "peak ", absl::StrJoin(peaks, ", "), process.ended() == "clean" ? "" : "  " + process.ended());
}

}  // namespace

// One process needs no list: the table is its own.
void AppendProcesses(const TextContext& context, std::string* out) {
  const Report& report = context.report;
  const std::map<uint32_t, Calls> calls = CallsByProcess(report);
  if (calls.size() > 1) {
    absl::StrAppend(out, "\n", context.paint.Bold("processes"), "\n");
    size_t shown = 0;
    for (const auto& [index, sum] : calls) {
      if (index >= static_cast<uint32_t>(report.processes_size())) continue;
      if (shown++ == kMostProcesses && !context.options.verbose) {
        absl::StrAppend(out, "  and ", calls.size() - kMostProcesses, " more: -v shows them\n");
        break;
      }
      absl::StrAppend(out, "  ", ProcessLine(report.processes(static_cast<int>(index)), sum), "\n");
    }
  }
  uint64_t idle = 0;
  for (int i = 0; i < report.processes_size(); ++i) {
    idle += report.processes(i).tracing() == "traced" && !calls.contains(static_cast<uint32_t>(i));
  }
  if (idle > 0 && !calls.empty()) {
    absl::StrAppend(out, "  ", Count(idle, "more process", "more processes"), " with PyTorch ran no attention\n");
  }
}

void AppendNotSeen(const TextContext& context, std::string* out) {
  if (context.report.blind_spots().empty()) {
    absl::StrAppend(out, "  not seen: nothing\n");
    return;
  }
  // A hundred children that miss the same are one line.
  struct Group {
    std::string code, text;
    uint64_t spots = 0, count = 0;
  };
  std::vector<Group> groups;
  for (const BlindSpot& spot : context.report.blind_spots()) {
    auto known = std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.code == spot.code(); });
    if (known == groups.end() || context.options.verbose) known = groups.insert(groups.end(), {spot.code(), spot.text()});
    ++known->spots;
    known->count += spot.count();
  }
  const std::string start = "  not seen: ";
  std::string lead = start;
  for (const Group& group : groups) {
    std::string text = absl::StrCat(group.code, ": ", group.text);
    if (group.count > group.spots) absl::StrAppend(&text, " (", group.count, ")");
    if (group.spots > 1) absl::StrAppend(&text, " (and ", group.spots - 1, " more)");
    for (const std::string& line : Wrap(Printable(text), context.width() - static_cast<int>(start.size()))) {
      absl::StrAppend(out, lead, line, "\n");
      lead = std::string(start.size(), ' ');
    }
  }
}

void AppendNext(const TextContext& context, std::string* out) {
  const std::string& path = context.options.report_path;
  if (path.empty()) return;
  std::string next = absl::StrCat("attntrace report ", path, " --format json");
  for (const Finding& finding : context.report.findings()) {
    if (IsBlindSpotFinding(finding)) continue;
    next = absl::StrCat("attntrace explain ", finding.rule());
    break;
  }
  const std::string report = absl::StrCat("report   ", path);
  const std::string gap = DisplayWidth(report) + 10 + 6 + DisplayWidth(next) <= context.width() ? std::string(10, ' ') : "\n";
  absl::StrAppend(out, "\n", report, gap, gap == "\n" ? "next     " : "next: ", next, "\n");
}

}  // namespace attntrace
