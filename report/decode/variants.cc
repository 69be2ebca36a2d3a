#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/decode/frames.h"
#include "report/decode/kernels.h"
#include "report/decode/stages.h"

namespace attntrace {
namespace {

using spool::VariantDef;

constexpr size_t kRecentCalls = 1024;  // of one process: a report stays small, however many processes it covers

const char* NameOf(spool::TriState state) {
  return state == spool::TriState::kYes ? "yes" : state == spool::TriState::kNo ? "no" : "unknown";
}

const char* NameOf(spool::SelectionState state) {
  return state == spool::SelectionState::kSet ? "set" : state == spool::SelectionState::kUnset ? "unset" : "not-attention";
}

template <typename T>
T Value(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
}

std::string ThreadName(const Definitions& definitions, uint32_t id) {
  const spool::ThreadDef* thread = definitions.Thread(id);
  if (thread == nullptr) return {};
  const std::string name = definitions.String(thread->name);
  return name.empty() ? absl::StrCat(thread->tid) : absl::StrCat(name, " (", thread->tid, ")");
}

void AddTensor(const spool::TensorDef& def, const char* role, Variant* variant) {
  if (!def.present) return;
  Tensor* tensor = variant->add_tensors();
  tensor->set_role(role);
  tensor->set_dtype(NameOf(def.dtype));
  tensor->set_device(def.device == DeviceKind::kCpu ? std::string(NameOf(def.device))
                                                    : absl::StrCat(NameOf(def.device), ":", int{def.device_index}));
  tensor->set_requires_grad(def.requires_grad != 0);
  tensor->set_layout(def.nested == 0 ? "strided" : def.nested == 1 ? "nested-strided" : "nested-jagged");
  if (def.nested != 0) return;
  const size_t dims = std::min<size_t>(def.rank, spool::kMaxDims);
  tensor->mutable_sizes()->Add(def.sizes, def.sizes + dims);
  tensor->mutable_strides()->Add(def.strides, def.strides + dims);
}

void FillModule(const Definitions& definitions, uint32_t id, Module* module) {
  const spool::ModuleDef* def = definitions.Module(id);
  if (def == nullptr) return;
  module->set_class_name(definitions.String(def->class_name));
  module->set_class_module(definitions.String(def->class_module));
  module->set_model_class(definitions.String(def->model_class));
  module->set_config_class(definitions.String(def->config_class));
  module->set_selection(definitions.String(def->selection));
  module->set_selection_state(NameOf(def->selection_state));
  module->set_function(definitions.String(def->function));
  module->set_is_causal(NameOf(def->is_causal));
  module->set_training(NameOf(def->training));
  module->set_output_attentions(definitions.String(def->output_attentions));
  module->set_attention_mask(definitions.String(def->attention_mask));
}

void FillCounters(const spool::VariantCounters& counters, Variant* variant) {
  variant->set_count(Value(counters.calls));
  variant->set_peak_bytes(Value(counters.peak_bytes));
  variant->set_score_bytes(Value(counters.score_bytes));
  variant->set_kept_bytes(Value(counters.kept_bytes));
  variant->set_allocated_bytes(Value(counters.allocated_bytes));
  variant->set_host_ns(Value(counters.host_ns));
  variant->set_first_ns(Value(counters.first_ns));
  variant->set_last_ns(Value(counters.last_ns));
  variant->set_min_seq_kv(Value(counters.min_seq_kv));
  variant->set_max_seq_kv(Value(counters.max_seq_kv));
}

// What all the masks that were read say together. One that is all true is a padding mask without padding, and so on; contents
// that have nothing in common are "other".
MaskContent CommonContent(MaskContent first, uint64_t seen) {
  const auto bit = [](MaskContent content) { return uint64_t{1} << static_cast<unsigned>(content); };
  seen &= ~bit(MaskContent::kUnread);
  if (seen == 0) return first;
  for (MaskContent one : {MaskContent::kAllTrue, MaskContent::kPlainCausal}) {
    if (seen == bit(one)) return one;
  }
  if ((seen & ~(bit(MaskContent::kAllTrue) | bit(MaskContent::kPadding))) == 0) return MaskContent::kPadding;
  if ((seen & ~(bit(MaskContent::kPlainCausal) | bit(MaskContent::kCausalPadding))) == 0) return MaskContent::kCausalPadding;
  return MaskContent::kOther;
}

// What a call was, as it was asked for.
void FillCall(const Definitions& definitions, const VariantDef& def, Variant* variant) {
  variant->set_operator_(definitions.String(def.op));
  variant->set_kernel_operator(definitions.String(def.kernel_op));
  variant->set_phase(NameOf(def.phase));
  variant->set_backend(NameOf(def.backend));
  variant->set_path(NameOf(def.path_kind));
  variant->set_mask_kind(NameOf(def.mask_kind));
  variant->set_mask_bytes(def.mask_bytes);
  variant->set_causal(def.flags & spool::kCausal);
  variant->set_gqa(def.flags & spool::kGqa);
  variant->set_grad_mode(def.flags & spool::kGradMode);
  variant->set_shapes_folded(def.flags & spool::kShapesFolded);
  variant->set_direct(def.flags & spool::kDirect);
  variant->set_dropout_p(def.dropout_p);
  variant->set_scale_given(def.flags & spool::kScaleGiven);
  if (variant->scale_given()) variant->set_scale(def.scale);
  variant->set_thread(ThreadName(definitions, def.thread));
  AddTensor(def.q, "q", variant);
  AddTensor(def.k, "k", variant);
  AddTensor(def.v, "v", variant);
  AddTensor(def.mask, "mask", variant);
}

// The forward of a backward, as far as one is known.
const VariantDef* ForwardOf(const Definitions& definitions, const VariantDef& def) {
  return def.forward_slot == 0 ? nullptr : definitions.Variant(def.forward_slot - 1);
}

// Where a call was. A backward's call path, module and layers are its forward's, whether the agent repeated them or not.
void FillPlace(const Definitions& definitions, uint32_t slot, const VariantDef& def, FrameDecoder* frames, Variant* variant) {
  const VariantDef* forward = ForwardOf(definitions, def);
  uint32_t path = frames->Path(def.path);
  if (path == 0 && forward != nullptr) path = frames->Path(forward->path);
  variant->set_call_path(path);
  if (path == 0) {
    variant->set_no_call_path(definitions.String(def.no_path_reason));
    if (variant->no_call_path().empty()) variant->set_no_call_path("none was recorded");
  }
  const uint32_t module = def.module == 0 && forward != nullptr ? forward->module : def.module;
  if (definitions.Module(module) != nullptr) FillModule(definitions, module, variant->mutable_module());
  std::set<int32_t> layers;
  auto records = definitions.Layers(slot);
  if (records.empty() && forward != nullptr) records = definitions.Layers(def.forward_slot - 1);
  for (const spool::LayerDef* layer : records) {
    if (layer->layer >= 0) layers.insert(layer->layer);
  }
  variant->mutable_layers()->Add(layers.begin(), layers.end());
}

void FillGates(const Definitions& definitions, uint32_t slot, Variant* variant) {
  const auto records = definitions.Gates(slot);
  std::vector<const spool::GateDef*> gates(records.begin(), records.end());
  std::stable_sort(gates.begin(), gates.end(),
                   [](const spool::GateDef* a, const spool::GateDef* b) { return a->order < b->order; });
  for (const spool::GateDef* def : gates) {
    Gate* gate = variant->add_gates();
    gate->set_backend(NameOf(def->backend));
    gate->set_text(definitions.String(def->text));
    gate->set_words(def->ours ? "attntrace" : "pytorch");
  }
}

// A slot counts once it was called; a forward that its backward names is kept too (a forked child may run only the backward).
std::vector<bool> SlotsInUse(const ProcessContext& context) {
  const Definitions& definitions = context.definitions;
  std::vector<bool> used(definitions.variant_slots());
  for (uint32_t slot = 0; slot < used.size(); ++slot) {
    const VariantDef* def = definitions.Variant(slot);
    if (def == nullptr || Value(context.spool.counters(slot).calls) == 0) continue;
    used[slot] = true;
    if (ForwardOf(definitions, *def) != nullptr) used[def->forward_slot - 1] = true;
  }
  return used;
}

void FillRecentCalls(const ProcessContext& context, const std::vector<uint32_t>& ids, Report* report) {
  std::vector<const spool::Event*> events = context.spool.Events();
  std::erase_if(events, [&](const spool::Event* event) { return event->slot >= ids.size() || ids[event->slot] == 0; });
  if (events.size() > kRecentCalls) events.erase(events.begin(), events.end() - kRecentCalls);
  for (const spool::Event* event : events) {
    RecentCall* call = report->add_recent_calls();
    call->set_process(context.index);
    call->set_variant(ids[event->slot]);
    call->set_end_ns(event->end_ns);
    call->set_host_ns(event->host_ns);
    call->set_peak_bytes(event->peak_bytes);
    call->set_live_bytes(event->live_bytes);
    call->set_layer(event->layer);
    call->set_thread(ThreadName(context.definitions, event->thread));
  }
}

}  // namespace

uint64_t DecodeVariants(const ProcessContext& context, Interner* interner, Symboliser* symboliser, Report* report) {
  const Definitions& definitions = context.definitions;
  FrameDecoder frames(definitions, context.directory, interner, symboliser);
  const std::vector<bool> used = SlotsInUse(context);
  std::vector<uint32_t> ids(used.size());  // 0: not in the report
  uint32_t next = static_cast<uint32_t>(report->variants_size());
  for (uint32_t slot = 0; slot < used.size(); ++slot) {
    if (used[slot]) ids[slot] = ++next;
  }
  uint64_t calls = 0;
  for (uint32_t slot = 0; slot < used.size(); ++slot) {
    if (!used[slot]) continue;
    const VariantDef& def = *definitions.Variant(slot);
    Variant* variant = report->add_variants();
    variant->set_id(ids[slot]);
    variant->set_process(context.index);
    FillCounters(context.spool.counters(slot), variant);
    FillCall(definitions, def, variant);
    variant->set_mask_content(NameOf(CommonContent(def.mask_content, Value(context.spool.counters(slot).mask_contents))));
    FillPlace(definitions, slot, def, &frames, variant);
    FillGates(definitions, slot, variant);
    FillKernels(definitions, slot, context.spool.counters(slot), variant);
    if (ForwardOf(definitions, def) != nullptr) variant->set_forward(ids[def.forward_slot - 1]);
    calls += variant->count();
  }
  FillRecentCalls(context, ids, report);
  return calls;
}

}  // namespace attntrace
