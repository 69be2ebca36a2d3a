#include <algorithm>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/owner.h"
#include "report/text_units.h"
#include "report/writers/places.h"
#include "report/writers/sites.h"
#include "report/writers/text_parts.h"
#include "tracer/spool/words.h"

namespace attntrace {
namespace {

constexpr size_t kMostRows = 40;
constexpr int kGap = 2;

// A row's name: the place, and what runs there, which is left out where there is no room.
struct Label {
  std::string place, what;
  bool operator==(const Label&) const = default;
};

std::string Text(const Label& label, int width) {
  const std::string whole = label.what.empty() ? label.place : absl::StrCat(label.place, " ", label.what);
  return DisplayWidth(whole) <= width ? whole : KeepStart(label.place, width);
}

// "modeling_qwen3.py:212 via vendor", "modeling_llama.py:252 LlamaAttention", "model.py:120".
Label LabelOf(const Report& report, const Variant& variant) {
  const CallPath* path = PathOf(report, variant);
  if (path == nullptr) return {variant.operator_(), "(no call path)"};
  const Frame* module = FrameAt(report, *path, ModulePosition(report, *path, variant.module()));
  const Frame* site = FrameAt(report, *path, path->call_site());
  if (site == nullptr) site = module != nullptr ? module : FrameAt(report, *path, 0);
  if (site == nullptr) return {variant.operator_(), ""};
  const std::string& class_name = variant.module().class_name();
  // A module of PyTorch's own (nn.MultiheadAttention) lies below the call site and names it no better.
  if (module == nullptr || site == module || IsPlumbing(module->owner())) {
    const bool library = site->owner() != kOwnerUser;
    return {BaseLocation(*site), !class_name.empty() ? class_name : library ? site->owner() : ""};
  }
  if (module->owner() == site->owner()) return {BaseLocation(*module), class_name};
  const std::string via = site->owner() == kOwnerUser ? BaseLocation(*site) : site->owner();
  return {absl::StrCat(BaseLocation(*module), " via ", via), ""};
}

std::string UserLine(const Report& report, const Variant& variant) {
  const CallPath* path = PathOf(report, variant);
  const Frame* user = path == nullptr ? nullptr : FrameAt(report, *path, path->user());
  return user == nullptr ? "" : BaseLocation(*user);
}

// Two call sites with one label are told apart by the user's line that led there.
std::vector<Label> Labels(const Report& report, const std::vector<SiteRow>& rows) {
  absl::flat_hash_map<std::string, std::string> user_of;
  absl::flat_hash_set<std::string> ambiguous;
  std::vector<Label> labels;
  for (const SiteRow& row : rows) {
    labels.push_back(LabelOf(report, *row.example));
    const auto [at, fresh] = user_of.try_emplace(labels.back().place, UserLine(report, *row.example));
    if (!fresh && at->second != UserLine(report, *row.example)) ambiguous.insert(labels.back().place);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string user = UserLine(report, *rows[i].example);
    if (ambiguous.contains(labels[i].place) && !user.empty()) labels[i].place = absl::StrCat(user, " > ", labels[i].place);
    labels[i] = {Printable(labels[i].place), Printable(labels[i].what)};
  }
  return labels;
}

std::string CellText(const PhaseCell& cell) {
  if (cell.ran.empty()) return "-";
  std::vector<std::string> names;
  for (const PhaseCell::Ran& ran : cell.ran) {
    const char* mark = ran.path == NameOf(PathKind::kDense) ? " !" : ran.path == NameOf(PathKind::kQuadratic) ? " ~" : "";
    names.push_back(Printable(ran.backend) + mark);
  }
  return absl::StrJoin(names, ", ");
}

std::string PeakText(const PhaseCell& cell) { return cell.calls == 0 ? "-" : FormatBytes(cell.peak_bytes); }

struct Column {
  std::string title;
  bool right;
  std::vector<std::string> cells;
  int width() const {
    int width = DisplayWidth(title);
    for (const std::string& cell : cells) width = std::max(width, DisplayWidth(cell));
    return width;
  }
};

std::vector<Column> Columns(const std::vector<SiteRow>& rows) {
  const auto any = [&](PhaseCell SiteRow::*phase) {
    return std::any_of(rows.begin(), rows.end(), [&](const SiteRow& row) { return (row.*phase).calls > 0; });
  };
  const bool recompute = any(&SiteRow::recompute), backward = any(&SiteRow::backward) || recompute;
  std::vector<Column> columns;
  const auto add = [&](const char* title, bool right, auto text) {
    Column column{title, right, {}};
    for (const SiteRow& row : rows) column.cells.push_back(text(row));
    columns.push_back(std::move(column));
  };
  add("forward", false, [](const SiteRow& row) { return CellText(row.forward); });
  if (recompute) add("recompute", false, [](const SiteRow& row) { return CellText(row.recompute); });
  if (backward) add("backward", false, [](const SiteRow& row) { return CellText(row.backward); });
  add("calls", true, [&](const SiteRow& row) {
    std::string text = absl::StrCat(row.forward.calls);
    if (backward) absl::StrAppend(&text, "/", row.backward.calls);
    if (recompute) absl::StrAppend(&text, "/", row.recompute.calls);
    return text;
  });
  add("peak fwd", true, [](const SiteRow& row) {
    PhaseCell both = row.forward;
    both.calls += row.recompute.calls;
    both.peak_bytes = std::max(both.peak_bytes, row.recompute.peak_bytes);
    return PeakText(both);
  });
  if (backward) add("peak bwd", true, [](const SiteRow& row) { return PeakText(row.backward); });
  const auto timed = [](const SiteRow& row) {
    return row.forward.device_ns + row.backward.device_ns + row.recompute.device_ns;
  };
  if (std::any_of(rows.begin(), rows.end(), [&](const SiteRow& row) { return timed(row) > 0; })) {
    add("gpu time", true, [&](const SiteRow& row) { return timed(row) == 0 ? "-" : FormatNs(timed(row)); });
  }
  return columns;
}

std::string Legend(const std::vector<Column>& columns) {
  bool dense = false, quadratic = false;
  for (const Column& column : columns) {
    for (const std::string& cell : column.cells) {
      dense |= cell.find(" !") != std::string::npos;
      quadratic |= cell.find(" ~") != std::string::npos;
    }
  }
  std::string legend = dense ? "  ! stores the scores, Sq x Sk a head" : "";
  if (quadratic) legend += "  ~ fused, but fed a mask of Sq x Sk";
  return legend;
}

}  // namespace

void AppendCallSites(const TextContext& context, std::string* out) {
  std::vector<SiteRow> rows = CallSiteRows(context.report);
  if (rows.empty()) return;
  std::vector<Label> labels = Labels(context.report, rows);
  const size_t all = rows.size();
  if (!context.options.verbose && all > kMostRows) {
    rows.resize(kMostRows);
    labels.resize(kMostRows);
  }
  const std::vector<Column> columns = Columns(rows);
  int taken = 2 + kGap;
  for (const Column& column : columns) taken += column.width() + kGap;
  int label_width = DisplayWidth("call sites") - 2;
  for (const Label& label : labels) label_width = std::max(label_width, DisplayWidth(Text(label, context.width())));
  label_width = std::max(20, std::min(label_width, context.width() - taken));

  const auto line = [&](const std::string& label, auto cell) {
    std::string text = label;
    for (const Column& column : columns) {
      const std::string value = cell(column);
      const int width = column.width();
      absl::StrAppend(&text, std::string(kGap, ' '), column.right ? PadLeft(value, width) : PadRight(value, width));
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  absl::StrAppend(
      out, "\n",
      context.paint.Bold(line(PadRight("call sites", label_width + 2), [](const Column& column) { return column.title; })),
      "\n");
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool repeated = i > 0 && labels[i] == labels[i - 1];
    const std::string label = PadRight(repeated ? "" : Text(labels[i], label_width), label_width);
    absl::StrAppend(out, line("  " + label, [&](const Column& column) { return column.cells[i]; }), "\n");
  }
  if (all > rows.size()) {
    absl::StrAppend(out, "  and ", Count(all - rows.size(), "more row", "more rows"), ": -v shows them\n");
  }
  if (const std::string legend = Legend(columns); !legend.empty()) absl::StrAppend(out, context.paint.Dim(legend), "\n");
}

}  // namespace attntrace
