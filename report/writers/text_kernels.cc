#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "report/kernel_label.h"
#include "report/text_units.h"
#include "report/writers/text_parts.h"
#include "tracer/spool/words.h"

namespace attntrace {
namespace {

constexpr size_t kMostLists = 12;
constexpr int kLabel = 24;

// Variants that launch the same, of one backend and phase.
struct List {
  std::string label, kernels;
  uint64_t calls = 0, device_ns = 0, timed = 0;
};

std::vector<List> ListsOf(const Report& report) {
  std::vector<List> lists;
  for (const Variant& variant : report.variants()) {
    std::string kernels = KernelList(variant);
    if (kernels.empty()) continue;
    std::string label = absl::StrCat(variant.backend(), " ", variant.phase());
    auto known = std::find_if(lists.begin(), lists.end(),
                              [&](const List& list) { return list.label == label && list.kernels == kernels; });
    if (known == lists.end()) known = lists.insert(lists.end(), {std::move(label), std::move(kernels)});
    known->calls += variant.count();
    known->device_ns += variant.device_ns();
    known->timed += variant.timed_launches();
  }
  std::stable_sort(lists.begin(), lists.end(), [](const List& a, const List& b) {
    return a.device_ns != b.device_ns ? a.device_ns > b.device_ns : a.calls > b.calls;
  });
  return lists;
}

// What runs inside a compiled region shows its kernels and nothing else.
std::string CompiledFlexLimit(const Report& report) {
  uint64_t calls = 0, shapeless = 0;
  for (const Variant& variant : report.variants()) {
    if (variant.backend() != NameOf(Backend::kFlexTriton) || variant.phase() == NameOf(Phase::kBackward)) continue;
    calls += variant.count();
    if (variant.tensors_size() == 0) shapeless += variant.count();
  }
  if (calls == 0) return "";
  std::string text = "compiled flex_attention runs past the dispatcher: its mask is not seen";
  if (shapeless > 0) absl::StrAppend(&text, ", nor the shapes of ", shapeless, " of its ", calls, " calls");
  return text;
}

}  // namespace

void AppendKernels(const TextContext& context, std::string* out) {
  const std::vector<List> lists = ListsOf(context.report);
  if (!lists.empty()) {
    absl::StrAppend(out, "\n", context.paint.Bold(PadRight("kernels", kLabel + 2) + "launched by one call"), "\n");
    size_t shown = 0;
    for (const List& list : lists) {
      if (shown++ == kMostLists && !context.options.verbose) {
        absl::StrAppend(out, "  and ", Count(lists.size() - kMostLists, "more list", "more lists"), ": -v shows them\n");
        break;
      }
      std::string text = list.kernels;
      if (list.timed > 0)
        absl::StrAppend(&text, "; ", FormatNs(list.device_ns), " on the device, ", list.timed, " launches timed");
      std::string start = absl::StrCat("  ", PadRight(list.label, kLabel));
      for (const std::string& line : Wrap(Printable(text), context.width() - kLabel - 2)) {
        absl::StrAppend(out, start, line, "\n");
        start = std::string(kLabel + 2, ' ');
      }
    }
  }
  if (const std::string limit = CompiledFlexLimit(context.report); !limit.empty()) {
    for (const std::string& line : Wrap(limit, context.width() - 2)) absl::StrAppend(out, "  ", context.paint.Dim(line), "\n");
  }
}

void AppendDeviceMemory(const TextContext& context, std::string* out) {
  for (const Process& process : context.report.processes()) {
    for (const DeviceMemory& memory : process.devices()) {
      if (memory.device_bytes() == 0) continue;
      std::string text =
          absl::StrCat("memory ", memory.device(), ": PyTorch's tensors at most ", FormatBytes(memory.peak_bytes()));
      if (memory.reserved_bytes() > 0) absl::StrAppend(&text, " in ", FormatBytes(memory.reserved_bytes()), " reserved");
      absl::StrAppend(
          &text, "; ", FormatBytes(memory.other_bytes()),
          " more in use on the device are not PyTorch's: CUDA's context and code, workspaces of libraries, other programs");
      if (memory.cupti_bytes() > 0) absl::StrAppend(&text, ", and ", FormatBytes(memory.cupti_bytes()), " of CUPTI's");
      if (context.report.processes_size() > 1) text = absl::StrCat(process.pid(), " ", text);
      std::string start = "  ";
      for (const std::string& line : Wrap(Printable(text), context.width() - 4)) {
        absl::StrAppend(out, start, line, "\n");
        start = "    ";
      }
    }
  }
}

}  // namespace attntrace
