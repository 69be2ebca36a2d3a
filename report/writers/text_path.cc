#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/built.h"
#include "report/owner.h"
#include "report/writers/places.h"
#include "report/writers/text_parts.h"

namespace attntrace {
namespace {

// Three columns: the user's line or the library's name; the source or the place in the library; the module or the function.
// Each as wide as what is in it, up to these.
constexpr int kFirst = 26, kSecond = 40, kGap = 2;

constexpr size_t kMostBuilt = 4;  // places; the evidence in the report names all

// What a finding is about, as far as a place goes: its first variant, or of an incident the same fields.
bool Shown(const Report& report, const Finding& finding, Variant* shown) {
  if (finding.variants_size() > 0) {
    for (const Variant& variant : report.variants()) {
      if (variant.id() != finding.variants(0)) continue;
      *shown = variant;
      return true;
    }
  }
  if (finding.incidents_size() == 0) return false;
  for (const Incident& incident : report.incidents()) {
    if (incident.id() != finding.incidents(0)) continue;
    shown->set_call_path(incident.call_path());
    shown->set_process(incident.process());
    *shown->mutable_module() = incident.module();
    return true;
  }
  return false;
}

// "LlamaAttention, layers 0-27"
std::string ModuleText(const Module& module, const Finding& finding) {
  if (module.class_name().empty() || finding.layers_size() == 0) return module.class_name();
  const std::vector<int32_t> layers(finding.layers().begin(), finding.layers().end());
  return absl::StrCat(module.class_name(), layers.size() == 1 ? ", layer " : ", layers ", Ranges(layers));
}

struct Line {
  std::string first, second, third;
  bool source;  // second is a line of code
};

struct Widths {
  int first = 0, second = 0;
};

Widths WidthsOf(const std::vector<Line>& lines) {
  Widths widths;
  for (const Line& line : lines) {
    widths.first = std::max(widths.first, DisplayWidth(line.first));
    // What has the rest of the line to itself needs no column.
    if (!line.third.empty()) widths.second = std::max(widths.second, std::min(kSecond, DisplayWidth(line.second)));
  }
  return widths;
}

std::string Row(const TextContext& context, const Line& line, const Widths& widths) {
  const int room = context.width() - kTextIndent - widths.first - kGap;
  const int second_width = line.third.empty() ? room : widths.second;
  const std::string second = line.source ? KeepStart(line.second, second_width) : KeepPathEnd(line.second, second_width);
  const std::string padded = line.third.empty() ? second : PadRight(second, second_width + kGap);
  std::string row = PadRight(line.first, widths.first + kGap);
  absl::StrAppend(&row, line.source ? context.paint.Dim(padded) : padded,
                  KeepStart(line.third, std::max(1, room - widths.second - kGap)));
  row.erase(row.find_last_not_of(' ') + 1);
  return row;
}

Line LineOf(const TextContext& context, const Place& place, const std::string& module) {
  const Frame& frame = *place.frame;
  const std::string location = Printable(Location(context.report, frame));
  const std::string first = KeepPathEnd(frame.owner() == kOwnerUser ? location : Printable(frame.owner()), kFirst);
  if (frame.owner() == kOwnerUser) {
    const std::string source = context.sources->Line(frame.file(), frame.line());
    return {first, source.empty() ? Printable(frame.function()) : source, place.module ? module : "", !source.empty()};
  }
  return {first, location, place.module ? module : Printable(frame.function()), false};
}

}  // namespace

void AppendWhere(const TextContext& context, const Finding& finding, std::string* out) {
  Variant variant;
  if (!Shown(context.report, finding, &variant)) return;
  const std::vector<Place> places = PlacesOf(context.report, variant);
  if (places.empty()) {
    const std::string why = variant.no_call_path().empty() ? "only PyTorch's own frames" : variant.no_call_path();
    return AppendLabelled(context, "where", absl::StrCat("not known: ", why), out);
  }
  std::string module = Printable(ModuleText(variant.module(), finding));
  std::vector<Line> lines;
  for (const Place& place : places) {
    lines.push_back(LineOf(context, place, module));
    if (place.module) module.clear();
  }
  const Widths widths = WidthsOf(lines);
  for (size_t i = 0; i < lines.size(); ++i) {
    absl::StrAppend(out, i == 0 ? "  where   " : std::string(kTextIndent, ' '), Row(context, lines[i], widths), "\n");
  }
  // Where no frame is the module's own, its name must not be lost.
  if (!module.empty()) AppendLabelled(context, "", "in " + module, out);
}

void AppendBuilt(const TextContext& context, const Finding& finding, std::string* out) {
  const bool told = std::any_of(finding.evidence().begin(), finding.evidence().end(),
                                [](const Evidence& evidence) { return evidence.name() == "built"; });
  if (!told) return;
  std::vector<Line> lines;
  for (const Frame* frame : BuiltFrames(context.report, finding)) {
    if (lines.size() < kMostBuilt) lines.push_back(LineOf(context, {frame, false}, ""));
  }
  const Widths widths = WidthsOf(lines);
  for (size_t i = 0; i < lines.size(); ++i) {
    absl::StrAppend(out, i == 0 ? "  built   " : std::string(kTextIndent, ' '), Row(context, lines[i], widths), "\n");
  }
}

}  // namespace attntrace
