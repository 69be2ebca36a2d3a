#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "report/decode/frames.h"
#include "report/decode/kernels.h"
#include "report/decode/parts.h"
#include "report/decode/references.h"
#include "report/decode/stages.h"

namespace attntrace {
namespace {

using spool::VariantDef;

constexpr size_t kRecentCalls = 1024;  // of one process: a report stays small, however many processes it covers

template <typename T>
T Value(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
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
  variant->set_mask_added(def.flags & spool::kMaskAdded);
  variant->set_causal_asked(def.flags & spool::kCausalAsked);
  variant->set_score_mod(def.flags & spool::kScoreMod);
  variant->set_dropout_p(def.dropout_p);
  variant->set_scale_given(def.flags & spool::kScaleGiven);
  if (variant->scale_given()) variant->set_scale(def.scale);
  variant->set_thread(ThreadName(definitions, def.thread));
  AddTensor(def.q, "q", variant->mutable_tensors());
  AddTensor(def.k, "k", variant->mutable_tensors());
  AddTensor(def.v, "v", variant->mutable_tensors());
  AddTensor(def.mask, "mask", variant->mutable_tensors());
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
  if (const spool::ModuleDef* const facts = definitions.Module(module); facts != nullptr) {
    FillModule(definitions, module, variant->mutable_module());
    variant->mutable_module()->set_built_at(frames->Path(facts->built_path));
  }
  std::set<int32_t> layers;
  auto records = definitions.Layers(slot);
  if (records.empty() && forward != nullptr) records = definitions.Layers(def.forward_slot - 1);
  for (const spool::LayerDef* layer : records) {
    if (layer->layer >= 0) layers.insert(layer->layer);
  }
  variant->mutable_layers()->Add(layers.begin(), layers.end());
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
    FillKernels(definitions, slot, context.spool.counters(slot), variant);
    FillGates(definitions, definitions.Gates(slot), variant->mutable_gates());
    for (const spool::FactDef* fact : definitions.Facts(slot)) {
      (*variant->mutable_facts())[definitions.String(fact->key)] = definitions.String(fact->value);
    }
    AddReferences(definitions, slot, ids[slot], report);
    if (ForwardOf(definitions, def) != nullptr) variant->set_forward(ids[def.forward_slot - 1]);
    calls += variant->count();
  }
  FillRecentCalls(context, ids, report);
  return calls;
}

}  // namespace attntrace
