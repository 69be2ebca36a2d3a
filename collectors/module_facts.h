// What a program knows about an attention call, read from its frames at the first call of a variant: the module and its class,
// its layer, its configuration's selection, the attention function, the type of the mask.
//
// Needs the GIL. Only reads dictionaries and local variables; see python_api.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "collectors/python_api.h"
#include "tracer/spool/format.h"

namespace attntrace {

struct ModuleFacts {
  std::string class_name, class_module, config_class, selection, function, output_attentions, model_class, attention_mask;
  std::string model_selection, no_sdpa_class, requested, requested_by, part, part_config;
  spool::SelectionState selection_state = spool::SelectionState::kNotAttention;
  spool::TriState is_causal = spool::TriState::kUnknown;
  spool::TriState training = spool::TriState::kUnknown;
  int32_t layer = -1;
  uint32_t built_path = 0;  // kPath id, 0 unknown
};

bool IsModule(python::Object* object) noexcept;  // a torch.nn.Module

// Whether this is a configuration of Transformers that selects no implementation. `config` may be null.
bool SelectsNothing(python::Object* config) noexcept;

// Index into `frames` (innermost first, strong references held by the caller) of the frame that runs the attention module: the
// innermost one whose `self` is a torch.nn.Module and not one of PyTorch's own building blocks. -1 where there is none.
int FindModuleFrame(python::Object* const* frames, int count) noexcept;

// The module object of that frame, for telling layers apart by address; null where it cannot be read.
python::Ref ModuleOfFrame(python::Object* frame) noexcept;

// What may change between two calls of one module without a change of its call path (training mode, the selection), as a hash
// that is cheap enough for every call.
uint64_t ModuleState(python::Object* module) noexcept;

ModuleFacts ReadModuleFacts(python::Object* const* frames, int count, int module_frame) noexcept;

// Calls `visit` with every local variable of the frame that is bound, and with the globals of a module's own frame.
void VisitLocals(python::Object* frame, const std::function<void(python::Object*)>& visit) noexcept;

// Runs through `code.co_varnames`: index of a local variable, -1 if it has none of that name.
int LocalIndex(python::Object* frame, const char* name) noexcept;

}  // namespace attntrace
