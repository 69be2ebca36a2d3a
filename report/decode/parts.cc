#include "report/decode/parts.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace attntrace {
namespace {

const char* NameOf(spool::TriState state) {
  return state == spool::TriState::kYes ? "yes" : state == spool::TriState::kNo ? "no" : "unknown";
}

const char* NameOf(spool::SelectionState state) {
  return state == spool::SelectionState::kSet ? "set" : state == spool::SelectionState::kUnset ? "unset" : "not-attention";
}

}  // namespace

std::string ThreadName(const Definitions& definitions, uint32_t id) {
  const spool::ThreadDef* thread = definitions.Thread(id);
  if (thread == nullptr) return {};
  const std::string name = definitions.String(thread->name);
  return name.empty() ? absl::StrCat(thread->tid) : absl::StrCat(name, " (", thread->tid, ")");
}

void AddTensor(const spool::TensorDef& def, const char* role, google::protobuf::RepeatedPtrField<Tensor>* tensors) {
  if (!def.present) return;
  Tensor* tensor = tensors->Add();
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
  module->set_model_selection(definitions.String(def->model_selection));
  module->set_no_sdpa_class(definitions.String(def->no_sdpa_class));
  module->set_requested(definitions.String(def->requested));
  module->set_requested_by(definitions.String(def->requested_by));
  module->set_part(definitions.String(def->part));
  module->set_part_config(definitions.String(def->part_config));
}

void FillGates(const Definitions& definitions, absl::Span<const spool::GateDef* const> records,
               google::protobuf::RepeatedPtrField<Gate>* out) {
  std::vector<const spool::GateDef*> gates(records.begin(), records.end());
  std::stable_sort(gates.begin(), gates.end(),
                   [](const spool::GateDef* a, const spool::GateDef* b) { return a->order < b->order; });
  for (const spool::GateDef* def : gates) {
    Gate* gate = out->Add();
    gate->set_backend(NameOf(def->backend));
    gate->set_text(definitions.String(def->text));
    gate->set_words(def->ours ? "attntrace" : "pytorch");
  }
}

}  // namespace attntrace
