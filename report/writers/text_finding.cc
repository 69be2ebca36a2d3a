#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/text_units.h"
#include "report/writers/text_parts.h"

namespace attntrace {
namespace {

constexpr int kMostFindings = 20;

std::string Phases(const Finding& finding) {
  const std::vector<std::string> phases = absl::StrSplit(finding.phase(), ',', absl::SkipEmpty());
  if (phases.size() < 2) return finding.phase();
  return absl::StrCat(absl::StrJoin(phases.begin(), phases.end() - 1, ", "), " and ", phases.back());
}

// "28 layers, 336 + 336 calls"
std::string Extent(const Finding& finding) {
  std::vector<uint64_t> counts;
  for (uint64_t count : {finding.forward_calls(), finding.recompute_calls(), finding.backward_calls()}) {
    if (count > 0) counts.push_back(count);
  }
  std::string calls = absl::StrCat(absl::StrJoin(counts, " + "), counts == std::vector<uint64_t>{1} ? " call" : " calls");
  if (counts.empty()) calls.clear();
  if (finding.layers_size() == 0) return calls;
  const std::string layers =
      finding.layers_size() == 1 ? absl::StrCat("layer ", finding.layers(0)) : absl::StrCat(finding.layers_size(), " layers");
  return calls.empty() ? layers : absl::StrCat(layers, ", ", calls);
}

void AppendPeak(const TextContext& context, const Finding& finding, std::string* out) {
  std::vector<std::string> peaks;
  if (finding.forward_peak_bytes() > 0) peaks.push_back("forward " + FormatBytes(finding.forward_peak_bytes()));
  if (finding.backward_peak_bytes() > 0) peaks.push_back("backward " + FormatBytes(finding.backward_peak_bytes()));
  if (!peaks.empty()) AppendLabelled(context, "peak", absl::StrJoin(peaks, ", ") + " a call", out);
}

// "4.2x"; whole numbers where they are large.
std::string Times(double ratio) { return ratio < 10 ? absl::StrFormat("%.1fx", ratio) : absl::StrFormat("%.0fx", ratio); }

// "4.2x less than", "2.0x more than", or `same` where one digit tells no difference.
std::string Compared(double ratio, const char* larger, const char* smaller, const char* same) {
  const double times = ratio >= 1 ? ratio : 1 / ratio;
  if (times < 1.05) return same;
  return absl::StrCat(Times(times), " ", ratio >= 1 ? larger : smaller);
}

// Where the call itself took nothing there is no ratio. A kernel's own workspace can be more than tiny scores.
std::string Memory(double ratio, int64_t observed) {
  return absl::StrCat(ratio <= 0 ? "against" : Compared(ratio, "less than", "more than", "as much as"), " ",
                      FormatBytes(observed));
}

std::string Speed(double ratio) { return ratio <= 0 ? "" : absl::StrCat(", ", Compared(ratio, "faster", "slower", "as fast")); }

// What a fused kernel took on the same shapes.
void AppendReference(const TextContext& context, const Finding& finding, std::string* out) {
  if (finding.fused_peak_bytes() > 0) {
    const std::string where = absl::StartsWith(finding.measured_on(), "cuda") ? "GPU" : "CPU";
    std::string text =
        absl::StrCat(FormatBytes(finding.fused_peak_bytes()), " (", Memory(finding.peak_ratio(), finding.observed_peak_bytes()),
                     Speed(finding.time_ratio()), "), ",
                     finding.fused_backend() == "tiled" ? "attntrace's own kernel" : finding.fused_backend(),
                     finding.measured_in_program() ? ", measured in the program on this " : ", measured on this ", where);
    if (finding.layers_size() > 1 && finding.saved_bytes_all_layers() > 0) {
      absl::StrAppend(&text, "; ", FormatBytes(finding.saved_bytes_all_layers()), " less over ", finding.layers_size(),
                      " layers");
    }
    AppendLabelled(context, "fused", absl::StrCat("same shapes: ", text), out);
  }
  for (const std::string& note : finding.reference_notes()) AppendLabelled(context, "", absl::StrCat("reference: ", note), out);
}

std::string Proof(const Advice& advice) {
  if (advice.proof().empty()) return "";
  if (advice.peak_bytes() == 0) return absl::StrCat(" (", advice.proof(), ")");
  return absl::StrCat(" (", advice.proof(), ", ", FormatBytes(advice.peak_bytes()),
                      advice.alters_result() ? "; it alters the result" : "", ")");
}

// What the heading, the peaks and the places say already is left out.
void AppendEvidence(const TextContext& context, const Finding& finding, std::string* out) {
  std::vector<std::string> parts;
  for (const Evidence& evidence : finding.evidence()) {
    if (evidence.name() == "calls" || evidence.name() == "built" || evidence.name() == "peak forward" ||
        evidence.name() == "peak backward")
      continue;
    parts.push_back(absl::StrCat(evidence.name(), " ", evidence.text()));
  }
  if (!parts.empty()) AppendLabelled(context, "shows", absl::StrJoin(parts, "; "), out);
}

// A table: what was asked for each part of a model, what its configuration says, what ran.
void AppendSubmodels(const TextContext& context, const Finding& finding, std::string* out) {
  if (finding.submodels_size() == 0) return;
  std::vector<std::array<std::string, 4>> rows = {{"sub-model", "requested", "config", "ran"}};
  for (const Submodel& part : finding.submodels()) {
    const std::string name =
        part.name().empty() ? part.config_class() : absl::StrCat(part.name(), " (", part.config_class(), ")");
    rows.push_back({Printable(name), Printable(part.requested().empty() ? "-" : part.requested()), Printable(part.selected()),
                    absl::StrCat(Printable(part.ran()), part.differs() ? " !" : "")});
  }
  std::array<int, 3> widths = {};
  for (const auto& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  const char* label = "  parts   ";
  for (const auto& row : rows) {
    absl::StrAppend(out, label);
    for (size_t i = 0; i < widths.size(); ++i) absl::StrAppend(out, PadRight(row[i], widths[i] + 2));
    absl::StrAppend(out, row.back(), "\n");
    label = "          ";
  }
}

// One line a condition, with all the backends that it ruled out.
void AppendGates(const TextContext& context, const Finding& finding, std::string* out) {
  std::vector<std::pair<const Gate*, std::vector<std::string>>> gates;
  for (const Gate& gate : finding.gates()) {
    auto known = std::find_if(gates.begin(), gates.end(), [&](const auto& one) {
      return one.first->text() == gate.text() && one.first->words() == gate.words();
    });
    if (known == gates.end()) known = gates.insert(gates.end(), {&gate, {}});
    if (std::find(known->second.begin(), known->second.end(), gate.backend()) == known->second.end()) {
      known->second.push_back(gate.backend());
    }
  }
  const char* label = "gates";
  for (const auto& [gate, backends] : gates) {
    std::string text = gate->text();
    while (absl::EndsWith(text, "\n") || absl::EndsWith(text, " ")) text.pop_back();
    AppendLabelled(context, label, absl::StrCat(absl::StrJoin(backends, ", "), ": ", text), out);
    label = "";
  }
}

void AppendAdvice(const TextContext& context, const Finding& finding, std::string* out) {
  bool first = true;
  for (const Advice& advice : finding.advice()) {
    const std::string proof = Proof(advice);
    absl::string_view text = advice.text();
    for (const char* said : {"or ", "or, "}) text = absl::StripPrefix(text, said);
    AppendLabelled(context, first ? "do" : "", absl::StrCat(first ? "" : "or ", text, proof), out);
    // The change itself is never broken: it is made to be copied.
    for (absl::string_view line : absl::StrSplit(advice.code(), '\n', absl::SkipEmpty())) {
      absl::StrAppend(out, std::string(kTextIndent + 2, ' '), context.paint.Bold(Printable(line)), "\n");
    }
    first = false;
  }
}

void AppendFinding(const TextContext& context, const Finding& finding, std::string* out) {
  std::string heading =
      absl::StrCat(context.paint.Severity(finding.severity(), finding.severity()), "  ", context.paint.Bold(finding.rule()));
  for (const std::string& part : {Phases(finding), Extent(finding)}) {
    if (!part.empty()) absl::StrAppend(&heading, " · ", part);
  }
  absl::StrAppend(out, "\n", heading, "\n");
  if (!finding.title().empty()) AppendLabelled(context, "what", finding.title(), out);
  AppendWhere(context, finding, out);
  AppendBuilt(context, finding, out);
  if (!finding.ran().empty()) AppendLabelled(context, "ran", finding.ran(), out);
  if (!finding.why().empty()) AppendLabelled(context, "why", finding.why(), out);
  AppendSubmodels(context, finding, out);
  AppendPeak(context, finding, out);
  AppendReference(context, finding, out);
  AppendEvidence(context, finding, out);
  AppendGates(context, finding, out);
  AppendAdvice(context, finding, out);
}

}  // namespace

void AppendLabelled(const TextContext& context, absl::string_view label, absl::string_view text, std::string* out) {
  std::string start = absl::StrCat("  ", PadRight(label, kTextIndent - 2));
  for (const std::string& line : Wrap(Printable(text), context.width() - kTextIndent)) {
    absl::StrAppend(out, start, line, "\n");
    start = std::string(kTextIndent, ' ');
  }
}

void AppendFindings(const TextContext& context, std::string* out) {
  int shown = 0, left = 0;
  for (const Finding& finding : context.report.findings()) {
    if (IsBlindSpotFinding(finding)) continue;
    if (shown < kMostFindings || context.options.verbose) {
      AppendFinding(context, finding, out);
      ++shown;
    } else {
      ++left;
    }
  }
  if (left > 0)
    absl::StrAppend(out, "\nand ", Count(static_cast<uint64_t>(left), "more finding", "more findings"), ": -v shows them\n");
}

}  // namespace attntrace
