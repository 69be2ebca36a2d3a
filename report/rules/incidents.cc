#include "report/rules/incidents.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/rules/support.h"
#include "report/text_units.h"

namespace attntrace::rules {
namespace {

constexpr char kFailStance[] = "Detected recompile when torch.compile stance is";

const CallPath* PathOf(const Report& report, uint32_t index) {
  return index == 0 || index > static_cast<uint32_t>(report.call_paths_size())
             ? nullptr
             : &report.call_paths(static_cast<int>(index) - 1);
}

const Frame* FrameAt(const Report& report, const Incident& incident, bool user) {
  const CallPath* path = PathOf(report, incident.call_path());
  if (path == nullptr) return nullptr;
  const int32_t position = user ? path->user() : path->call_site();
  if (position < 0 || position >= path->frames_size()) return nullptr;
  const uint32_t frame = path->frames(position);
  return frame < static_cast<uint32_t>(report.frames_size()) ? &report.frames(static_cast<int>(frame)) : nullptr;
}

template <typename Predicate>
bool AnyFrame(const Report& report, const Incident& incident, Predicate&& holds) {
  const CallPath* path = PathOf(report, incident.call_path());
  if (path == nullptr) return false;
  return std::any_of(path->frames().begin(), path->frames().end(), [&](uint32_t index) {
    return index < static_cast<uint32_t>(report.frames_size()) && holds(report.frames(static_cast<int>(index)));
  });
}

bool InFlex(const Report& report, const Incident& incident) {
  return AnyFrame(report, incident, [](const Frame& frame) {
    return frame.module() == "torch.nn.attention.flex_attention" ||
           absl::StartsWith(frame.module(), "torch._inductor.kernel.flex") ||
           absl::StartsWith(frame.module(), "torch._higher_order_ops.flex_attention");
  });
}

bool InAttention(const Report& report, const Incident& incident) {
  return InFlex(report, incident) || AnyFrame(report, incident, [](const Frame& frame) {
           return absl::StartsWith(frame.module(), "transformers.integrations.") &&
                  absl::StrContains(frame.module(), "attention");
         });
}

bool IsOutOfMemory(const Incident& incident) {
  return absl::StrContains(incident.type(), "OutOfMemoryError") || absl::StrContains(incident.message(), "out of memory") ||
         absl::StrContains(incident.message(), "can't allocate memory");
}

bool Is(const Incident& incident, absl::string_view type) {
  return incident.type() == type || absl::EndsWith(incident.type(), absl::StrCat(".", type));
}

bool LooksUpSelection(const Report& report, const Incident& incident) {
  return AnyFrame(report, incident, [](const Frame& frame) { return absl::StartsWith(frame.module(), "transformers."); });
}

// A BlockMask was sliced like a tensor: PyTorch's own IndexError says neither what was sliced nor by whom.
bool UsedAsTensor(const Report& report, const Incident& incident) {
  const CallPath* path = PathOf(report, incident.call_path());
  if (path == nullptr || path->frames().empty() || incident.module().attention_mask() != "BlockMask") return false;
  const uint32_t deepest = path->frames(0);
  return deepest < static_cast<uint32_t>(report.frames_size()) &&
         absl::StartsWith(report.frames(static_cast<int>(deepest)).function(), "BlockMask.");
}

// The same place by what a rule would call it: an operator that threw and the exception that came of it.
bool SamePlace(const Report& report, const Incident& a, const Incident& b) {
  const Frame *left = CallSite(report, a), *right = CallSite(report, b);
  return a.process() == b.process() && left != nullptr && right != nullptr && left->file() == right->file() &&
         left->line() == right->line();
}

// A failing operator's exception is one that says nothing else: of the same place, or of none that is known.
bool Explains(const Report& report, const Incident& exception, const Incident& op) {
  const Fault fault = FaultOf(report, exception);
  if (op.kind() == "double-backward") return fault == Fault::kDerivative && exception.process() == op.process();
  return (fault == Fault::kRefused || fault == Fault::kOther || fault == Fault::kMask) && SamePlace(report, exception, op);
}

// Whether calls of attention came from the same user's line before.
bool RanAttention(const Report& report, const Incident& incident) {
  const Frame* line = UserLine(report, incident);
  return line != nullptr && std::any_of(report.variants().begin(), report.variants().end(), [&](const Variant& variant) {
           const Frame* one = UserLine(report, variant);
           return one != nullptr && one->file() == line->file() && one->line() == line->line();
         });
}

bool IsCaught(const Incident& incident) { return incident.kind() == "caught" || incident.kind() == "dropped"; }

// Seen while it was handled, or when it had been; somebody else's or already told, it is nothing.
bool IsToldOtherwise(const Report& report, const Incident& caught) {
  return std::any_of(report.incidents().begin(), report.incidents().end(), [&](const Incident& one) {
    return one.id() != caught.id() && one.process() == caught.process() && one.type() == caught.type() &&
           one.message() == caught.message() && UserLine(report, one) == UserLine(report, caught) &&
           (!IsCaught(one) || one.id() < caught.id());
  });
}

bool IsRaised(const Incident& incident) { return incident.kind() == "exception" || incident.kind() == "thread-exception"; }

// The exception that a chain of causes led to.
const Incident& RootOf(const Report& report, const Incident& incident) {
  const Incident* root = &incident;
  for (int i = 0; i < 16 && root->leads_to() != 0; ++i) {
    const auto next = std::find_if(report.incidents().begin(), report.incidents().end(),
                                   [&](const Incident& one) { return one.id() == root->leads_to(); });
    if (next == report.incidents().end()) break;
    root = &*next;
  }
  return *root;
}

// A program that drops an exception and ends well has coped with it.
bool EndedWell(const Report& report, uint32_t process) {
  return report.run().ended() == "exit" && report.run().exit_code() == 0 &&
         std::none_of(report.incidents().begin(), report.incidents().end(),
                      [&](const Incident& one) { return one.process() == process && one.kind() == "exception"; });
}

}  // namespace

const Frame* CallSite(const Report& report, const Incident& incident) { return FrameAt(report, incident, false); }
const Frame* UserLine(const Report& report, const Incident& incident) { return FrameAt(report, incident, true); }

Fault FaultOf(const Report& report, const Incident& incident) {
  const std::string& message = incident.message();
  if (incident.kind() == "double-backward") return Fault::kDerivative;
  if (incident.kind() == "operator")
    return absl::StrContains(incident.operator_(), "scaled_dot_product_attention") &&
                   !absl::StrContains(incident.operator_(), "::_")
               ? Fault::kRefused
               : Fault::kNone;
  if (incident.kind() == "block-mask" || IsOutOfMemory(incident)) return Fault::kNone;
  if (absl::StrContains(message, "is not a valid attention implementation")) return Fault::kUnknownName;
  if (Is(incident, "ValueError") && LooksUpSelection(report, incident)) {  // where a model is made
    if (absl::StartsWith(message, "Specified `attn_implementation=")) return Fault::kUnknownName;
    if (absl::StrContains(message, "does not support an attention implementation through") ||
        absl::StrContains(message, "does not support Flash Attention")) {
      return Fault::kUnsupported;
    }
  }
  if (Is(incident, "KeyError") && LooksUpSelection(report, incident)) {
    if (message == "None") return Fault::kUnset;
    if (!message.empty() && message == incident.module().selection()) return Fault::kUnknownName;
  }
  if ((Is(incident, "TypeError") || Is(incident, "AttributeError")) && absl::StrContains(message, "BlockMask"))
    return Fault::kMask;
  if (UsedAsTensor(report, incident)) return Fault::kMask;
  if (absl::StrContains(message, "No available kernel")) return Fault::kRefused;
  if (absl::StrContains(message, "derivative for") && absl::StrContains(message, "attention") &&
      absl::StrContains(message, "not implemented")) {
    return Fault::kDerivative;
  }
  if (Is(incident, "FailOnRecompileLimitHit") || absl::StartsWith(message, kFailStance)) {
    const auto recompiled = incident.facts().find("dynamo.recompiled");
    const bool ours = absl::StrContains(message, "attention") || InAttention(report, incident) ||
                      !incident.module().config_class().empty() || RanAttention(report, incident) ||
                      (recompiled != incident.facts().end() && absl::StrContains(recompiled->second, "attention"));
    return ours ? Fault::kRecompileLimit : Fault::kNone;
  }
  const bool cudnn =
      absl::StrContains(message, "mha_graph");  // PyTorch's name for cuDNN's attention: nothing else is called so
  if (IsRaised(incident) && (cudnn || absl::StrContains(message, "CUDA error: invalid configuration argument") ||
                             absl::StrContains(message, "CUDA error: invalid argument"))) {
    return BeyondGrid(report).batch > 0 ? Fault::kLaunch : cudnn ? Fault::kOther : Fault::kNone;
  }
  const bool unsupported = Is(incident, "NotImplementedError") || absl::StrContains(message, "NotImplementedError");
  if (unsupported && (InFlex(report, incident) || absl::StrContains(absl::AsciiStrToLower(message), "flex")))
    return Fault::kNoFlexBackward;
  return InAttention(report, incident) ? Fault::kOther : Fault::kNone;
}

LargeGrid BeyondGrid(const Report& report) {
  LargeGrid found;
  found.blocks = kMostBlocks;
  const auto look = [&](const auto& tensors, const Variant* variant, const Incident* incident) {
    if (tensors.empty() || !absl::StartsWith(tensors[0].device(), "cuda") || tensors[0].sizes_size() != 4) return;
    const auto& sizes = tensors[0].sizes();
    const int64_t blocks = sizes[0] * std::max<int64_t>(1, std::min(sizes[1], sizes[2]));  // of heads and rows the fewer
    if (blocks > found.blocks) found = {variant, incident, sizes[0], blocks};
  };
  for (const Incident& incident : report.incidents()) look(incident.tensors(), nullptr, &incident);
  for (const Variant& variant : report.variants()) look(variant.tensors(), &variant, nullptr);
  return found;
}

std::vector<Failure> FindFailures(const Report& report) {
  std::vector<Failure> failures;
  std::set<uint32_t> told;
  const auto add_operators = [&](const Incident& incident, Failure* failure) {
    for (const Incident& op : report.incidents()) {
      if ((op.kind() != "operator" && op.kind() != "double-backward") || !Explains(report, incident, op)) continue;
      if (told.insert(op.id()).second) failure->incidents.push_back(&op);
    }
  };
  // One fault a chain: the outermost exception that is attention's own.
  std::set<uint32_t> roots;
  for (const Incident& incident : report.incidents()) {
    if (!IsRaised(incident) && incident.kind() != "cause") continue;
    if (IsCaught(RootOf(report, incident))) continue;
    const Fault fault = FaultOf(report, incident);
    if (fault == Fault::kNone || !roots.insert(RootOf(report, incident).id()).second) continue;
    Failure failure{fault, {&incident}, true};
    add_operators(incident, &failure);
    failures.push_back(std::move(failure));
  }
  for (const Incident& incident : report.incidents()) {
    const Incident& root = RootOf(report, incident);
    if (!IsCaught(root) || IsToldOtherwise(report, incident)) continue;
    if (root.kind() == "dropped" && EndedWell(report, incident.process())) continue;
    const Fault fault = FaultOf(report, incident);
    if (fault == Fault::kNone || fault == Fault::kOther || !roots.insert(root.id()).second) continue;
    Failure failure{fault, {&incident}, false};
    add_operators(incident, &failure);
    failures.push_back(std::move(failure));
  }
  for (const Incident& incident : report.incidents()) {
    if ((incident.kind() != "operator" && incident.kind() != "double-backward") || told.count(incident.id()) == 1) continue;
    if (const Fault fault = FaultOf(report, incident); fault != Fault::kNone) failures.push_back({fault, {&incident}, false});
  }
  return failures;
}

Finding Describe(const Report& report, const Failure& failure) {
  Finding finding;
  std::set<int32_t> layers;
  std::set<std::string> gates;
  for (const Incident* incident : failure.incidents) {
    finding.add_incidents(incident->id());
    layers.insert(incident->layers().begin(), incident->layers().end());
    AddGates(incident->gates(), &gates, &finding);
    if (!incident->tensors().empty() && finding.ran().empty()) {
      finding.set_ran(absl::StrCat(incident->operator_(), " was asked for: ", DescribeTensors(incident->tensors())));
    }
  }
  finding.mutable_layers()->Add(layers.begin(), layers.end());
  finding.set_phase(failure.fault == Fault::kDerivative ? "backward" : "forward");
  const Incident& first = failure.first();
  if (!first.type().empty() && first.kind() != "double-backward") AddText(&finding, "exception", InWords(first));
  if (first.kind() == "thread-exception") AddText(&finding, "thread", first.thread());
  for (const Incident* incident : failure.incidents) {
    if (incident->pinned_at().empty()) continue;
    AddText(&finding, "pinned at", incident->pinned_at());
    break;
  }
  if (!failure.fatal) finding.set_severity("note");
  return finding;
}

std::string InWords(const Incident& incident) {
  const std::string type = incident.type().substr(incident.type().rfind('.') + 1);
  const std::string line = incident.message().substr(0, std::min<size_t>(incident.message().find('\n'), 200));
  return line.empty() ? type : absl::StrCat(type, ": ", line);
}

std::string LayerOf(const Report& report, const Incident& incident) {
  const Module& module = incident.module();
  if (module.class_name().empty()) {
    const Frame* site = CallSite(report, incident);
    return site == nullptr ? "attention" : Place(site);
  }
  std::string text = module.class_name();
  if (!module.config_class().empty()) absl::StrAppend(&text, " (", module.config_class(), ")");
  if (incident.layers_size() == 1) absl::StrAppend(&text, ", layer ", incident.layers(0));
  return text;
}

}  // namespace attntrace::rules
