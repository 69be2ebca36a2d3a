#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/owner.h"
#include "report/writers/places.h"
#include "report/writers/text_parts.h"

namespace attntrace {
namespace {

// Three columns: the user's line or the library's name; the source or the place in the library; the module or the function.
constexpr int kFirst = 24, kSecond = 38, kGap = 2;

const Variant* Shown(const Report& report, const Finding& finding) {
  if (finding.variants_size() == 0) return nullptr;
  for (const Variant& variant : report.variants()) {
    if (variant.id() == finding.variants(0)) return &variant;
  }
  return nullptr;
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

std::string Row(const TextContext& context, const Line& line, bool start) {
  const int room = context.width() - kTextIndent;
  std::string row = start ? "  where   " : std::string(kTextIndent, ' ');
  const int second_width = line.third.empty() ? room - kFirst - kGap : kSecond;
  std::string first = DisplayWidth(line.first) > kFirst ? KeepEnd(line.first, kFirst) : line.first;
  std::string second = line.source ? KeepStart(line.second, second_width) : KeepEnd(line.second, second_width);
  if (second.empty() && line.third.empty()) return row + first;
  absl::StrAppend(&row, PadRight(first, kFirst + kGap));
  const std::string padded = line.third.empty() ? second : PadRight(second, kSecond + kGap);
  absl::StrAppend(&row, line.source ? context.paint.Dim(padded) : padded);
  absl::StrAppend(&row, KeepStart(line.third, room - kFirst - kSecond - 2 * kGap));
  return row;
}

Line LineOf(const TextContext& context, const Place& place, const std::string& module) {
  const Frame& frame = *place.frame;
  const std::string location = Printable(Location(context.report, frame));
  if (frame.owner() == kOwnerUser) {
    const std::string source = context.sources->Line(frame.file(), frame.line());
    return {location, source.empty() ? Printable(frame.function()) : source, place.module ? module : "", !source.empty()};
  }
  return {frame.owner(), location, place.module ? module : Printable(frame.function()), false};
}

}  // namespace

void AppendWhere(const TextContext& context, const Finding& finding, std::string* out) {
  const Variant* variant = Shown(context.report, finding);
  if (variant == nullptr) return;
  const std::vector<Place> places = PlacesOf(context.report, *variant);
  if (places.empty()) {
    const std::string why = variant->no_call_path().empty() ? "only PyTorch's own frames" : variant->no_call_path();
    return AppendLabelled(context, "where", absl::StrCat("not known: ", why), out);
  }
  std::string module = Printable(ModuleText(variant->module(), finding));
  bool start = true;
  for (const Place& place : places) {
    absl::StrAppend(out, Row(context, LineOf(context, place, module), start), "\n");
    start = false;
    if (place.module) module.clear();
  }
  // Where no frame is the module's own, its name must not be lost.
  if (!module.empty()) AppendLabelled(context, "", "in " + module, out);
}

}  // namespace attntrace
