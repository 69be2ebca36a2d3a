#include "collectors/module_facts.h"

#include <cstring>

#include "collectors/built.h"
#include "collectors/requests.h"
#include "collectors/thread_caches.h"

namespace attntrace {
namespace {

using namespace python;

constexpr int kMaxInlined = 4096;  // modules looked at for the selections of a compiled one, or for a part's place
constexpr int kDeepestPart = 5;    // steps down from the model

bool StartsWith(const std::string& text, const char* prefix) noexcept { return text.compare(0, strlen(prefix), prefix) == 0; }

void* ModuleType() noexcept {  // torch.nn.Module, once it is there
  static void* type = nullptr;
  if (type == nullptr) {
    Object* const module = LoadedModule("torch.nn.modules.module");
    if (module != nullptr) type = OwnAttribute(module, "Module");
  }
  return type;
}

// Softmax, Dropout, Linear, torch.compile's wrappers, ...: steps and shells of an attention, not the attention. PyTorch's own
// nn.MultiheadAttention and Transformer layers are.
bool IsPyTorchShell(Object* module) noexcept {
  const std::string home = TypeModule(TypeOf(module));
  if (!StartsWith(home, "torch.")) return false;
  return home != "torch.nn.modules.transformer" && TypeName(TypeOf(module)) != "MultiheadAttention";
}

Ref VariableNames(Object* frame) noexcept {
  const Ref code(Py().PyFrame_GetCode(frame));
  Ref names(Py().PyObject_GetAttrString(code.get(), "co_varnames"));
  if (!names) Py().PyErr_Clear();
  return names;
}

Ref LocalByName(Object* frame, const char* name) noexcept {
  const int index = LocalIndex(frame, name);
  return index < 0 ? Ref() : Local(frame, index, name);
}

bool FirstVariableIs(Object* frame, const char* name) noexcept { return LocalIndex(frame, name) == 0; }

spool::TriState Truth(Object* value) noexcept {
  if (value == nullptr || TypeOf(value) != Py().bool_type) return spool::TriState::kUnknown;
  return value == Py().true_object ? spool::TriState::kYes : spool::TriState::kNo;
}

bool IsTrue(Object* value) noexcept { return value != nullptr && value == Py().true_object; }

// A Transformers configuration has `_attn_implementation` as a property of its class and the value beside it (4.48 to 5.x).
bool IsConfig(Object* config) noexcept {
  return config != nullptr && config != Py().none &&
         (ClassAttribute(TypeOf(config), "_attn_implementation") != nullptr ||
          OwnAttribute(config, "_attn_implementation_internal") != nullptr);
}

// Null where the module has none.
Object* ConfigOf(Object* module) noexcept {
  Object* const config = OwnAttribute(module, "config");
  return IsConfig(config) ? config : nullptr;
}

// The selection that the module sees: its own configuration's, or, where it keeps none (Bloom's attention, the layer classes of
// Transformers 4.48), that of the nearest module around it that has one.
// That configuration, or null; its module, which a frame holds, keeps it.
Object* ReadSelection(Object* const* frames, int count, int module_frame, ModuleFacts* facts) noexcept {
  for (int i = module_frame; i < count; ++i) {
    if (!FirstVariableIs(frames[i], "self")) continue;
    const Ref self = ModuleOfFrame(frames[i]);
    Object* const config = self && IsModule(self.get()) ? ConfigOf(self.get()) : nullptr;
    if (config == nullptr) continue;
    facts->config_class = TypeName(TypeOf(config));
    Object* const value = OwnAttribute(config, "_attn_implementation_internal");
    facts->selection_state = IsString(value) ? spool::SelectionState::kSet : spool::SelectionState::kUnset;
    facts->selection = Text(value);
    for (const char* const name : {"output_attentions", "_output_attentions"}) {
      if (IsTrue(OwnAttribute(config, name))) facts->output_attentions = "config";
    }
    return config;
  }
  return nullptr;
}

// Dynamo's own bytecode runs in this frame: modules that it calls may have been inlined.
bool IsCompiled(Object* frame) noexcept {
  const Ref code(Py().PyFrame_GetCode(frame));
  const Ref names(Py().PyObject_GetAttrString(code.get(), "co_names"));
  const intptr_t count = names ? Py().PyTuple_Size(names.get()) : 0;
  for (intptr_t i = 0; i < count; ++i) {
    const char* const name = Py().PyUnicode_AsUTF8(Py().PyTuple_GetItem(names.get(), i));
    if (name != nullptr && strncmp(name, "__compiled_fn_", 14) == 0) return true;
  }
  Py().PyErr_Clear();
  return false;
}

// Whether every module inside that has a configuration selects `selection`. `budget` bounds the walk.
bool AllSelect(Object* module, const std::string& selection, int* budget) noexcept {
  Object* const children = OwnAttribute(module, "_modules");
  if (children == nullptr || Py().PyType_IsSubtype(TypeOf(children), Py().dict_type) == 0) return true;
  intptr_t at = 0;
  Object *key = nullptr, *child = nullptr;
  while (Py().PyDict_Next(children, &at, &key, &child) != 0) {
    if (!IsModule(child)) continue;
    if (--*budget < 0) return false;
    Object* const config = ConfigOf(child);
    if (config != nullptr && Text(OwnAttribute(config, "_attn_implementation_internal")) != selection) return false;
    if (!AllSelect(child, selection, budget)) return false;
  }
  return true;
}

// A compiled region has no frames of the layers that it inlined, so what is read is the selection of the module around them. It
// is theirs only if all of them have the same.
void DropUncertainSelection(Object* const* frames, int module_frame, Object* module, ModuleFacts* facts) noexcept {
  bool compiled = false;
  for (int i = 0; i <= module_frame && !compiled; ++i) {
    compiled = IsCompiled(frames[i]);
    if (compiled && StartsWith(ModuleNameOf(frames[i]), "torch.nn.attention.")) return;  // called by the layer itself
  }
  int budget = kMaxInlined;
  if (!compiled || AllSelect(module, facts->selection, &budget)) return;
  facts->config_class.clear();
  facts->selection.clear();
  facts->selection_state = spool::SelectionState::kNotAttention;
}

// `output_attentions=True` as an argument of any frame from the attention outwards.
bool AskedForAttentions(Object* const* frames, int count) noexcept {
  for (int i = 0; i < count && i < 24; ++i) {
    if (IsTrue(LocalByName(frames[i], "output_attentions").get())) return true;
    const Ref arguments = LocalByName(frames[i], "kwargs");
    if (arguments && TypeOf(arguments.get()) == Py().dict_type &&
        IsTrue(Py().PyDict_GetItemString(arguments.get(), "output_attentions"))) {
      return true;
    }
  }
  return false;
}

// Path of `wanted` among the children of `module` at exactly `depth` steps down; "" where it is not there.
std::string PathAt(Object* module, Object* wanted, int depth, int* budget) noexcept {
  Object* const children = OwnAttribute(module, "_modules");
  if (children == nullptr || Py().PyType_IsSubtype(TypeOf(children), Py().dict_type) == 0) return {};
  intptr_t at = 0;
  Object *key = nullptr, *child = nullptr;
  while (Py().PyDict_Next(children, &at, &key, &child) != 0) {
    if (!IsModule(child) || --*budget < 0) continue;
    if (depth == 1 && child == wanted) return Text(key);
    const std::string below = depth > 1 ? PathAt(child, wanted, depth - 1, budget) : std::string();
    if (!below.empty()) return Text(key) + "." + below;
  }
  return {};
}

// "model.vision_tower". Parts of a model are near its top; layers come in hundreds.
std::string PathOf(Object* root, Object* wanted) noexcept {
  int budget = kMaxInlined;
  for (int depth = 1; depth <= kDeepestPart && budget > 0 && root != wanted; ++depth) {
    std::string path = PathAt(root, wanted, depth, &budget);
    if (!path.empty()) return path;
  }
  return {};
}

// The modules around the attention, outermost first: the model, its selection, the part of it, whether the class around it
// takes sdpa. `config` is the attention's own.
void ReadModels(Object* const* frames, int count, int module_frame, Object* config, ModuleFacts* facts) noexcept {
  Ref root, part;
  Object* root_config = nullptr;
  for (int i = count - 1; i >= module_frame; --i) {
    if (!FirstVariableIs(frames[i], "self")) continue;
    Ref self = ModuleOfFrame(frames[i]);
    if (!self || !IsModule(self.get()) || IsPyTorchShell(self.get())) continue;
    if (facts->model_class.empty()) facts->model_class = TypeName(TypeOf(self.get()));
    Object* const supports = ClassAttribute(TypeOf(self.get()), "_supports_sdpa");
    if (supports != nullptr) {
      facts->no_sdpa_class = Truth(supports) == spool::TriState::kNo ? TypeName(TypeOf(self.get())) : std::string();
      Py().Py_IncRef(self.get());
      part = Ref(self.get());
    }
    Object* const own = facts->model_selection.empty() ? ConfigOf(self.get()) : nullptr;
    if (own == nullptr) continue;
    facts->model_selection = Text(OwnAttribute(own, "_attn_implementation_internal"));
    root_config = own;
    root = std::move(self);
  }
  if (!root) return;
  ReadRequest(root.get(), root_config, part ? part.get() : root.get(), config, facts);
  if (part) facts->part = PathOf(root.get(), part.get());
}

std::string MaskType(Object* frame) noexcept {
  for (const char* const name : {"attention_mask", "attn_mask", "mask"}) {
    if (LocalIndex(frame, name) < 0) continue;
    const Ref value = LocalByName(frame, name);
    if (!value) continue;
    return value.get() == Py().none ? "None" : TypeName(TypeOf(value.get()));
  }
  return {};
}

// The function object is not reachable from a frame before 3.11's internals; its module and qualified name are enough.
std::string FunctionOfFrame(Object* frame) noexcept {
  const Ref code(Py().PyFrame_GetCode(frame));
  Ref name(Py().PyObject_GetAttrString(code.get(), "co_qualname"));
  if (!name) {
    Py().PyErr_Clear();
    name = Ref(Py().PyObject_GetAttrString(code.get(), "co_name"));
  }
  return ModuleNameOf(frame) + ":" + (name ? Text(name.get()) : std::string());
}

}  // namespace

bool IsModule(Object* object) noexcept {
  void* const type = ModuleType();
  return type != nullptr && object != nullptr && Py().PyType_IsSubtype(TypeOf(object), type) != 0;
}

bool SelectsNothing(Object* config) noexcept {
  return IsConfig(config) && !IsString(OwnAttribute(config, "_attn_implementation_internal"));
}

int LocalIndex(Object* frame, const char* name) noexcept {
  const Ref names = VariableNames(frame);
  if (!names) return -1;
  const intptr_t count = Py().PyTuple_Size(names.get());
  for (intptr_t i = 0; i < count; ++i) {
    const char* const text = Py().PyUnicode_AsUTF8(Py().PyTuple_GetItem(names.get(), i));
    if (text != nullptr && strcmp(text, name) == 0) return static_cast<int>(i);
  }
  return -1;
}

void VisitLocals(Object* frame, const std::function<void(Object*)>& visit) noexcept {
  if (!LocalsReadable()) return;
  const Ref names = VariableNames(frame);
  const intptr_t count = names ? Py().PyTuple_Size(names.get()) : 0;
  for (intptr_t i = 0; i < count; ++i) {
    const char* const name = Py().PyUnicode_AsUTF8(Py().PyTuple_GetItem(names.get(), i));
    if (name == nullptr) continue;
    if (const Ref value = Local(frame, static_cast<int>(i), name)) visit(value.get());
  }
  if (count > 0 || FunctionNameOf(frame) != "<module>") return;
  const Ref globals = GlobalsOf(frame);
  if (!globals || TypeOf(globals.get()) != Py().dict_type) return;
  intptr_t at = 0;
  Object *key = nullptr, *value = nullptr;
  while (Py().PyDict_Next(globals.get(), &at, &key, &value) != 0) visit(value);
}

Ref ModuleOfFrame(Object* frame) noexcept { return Local(frame, 0, "self"); }

uint64_t ModuleState(Object* module) noexcept {
  static Object* const training = Py().PyUnicode_InternFromString("training");
  static Object* const config_name = Py().PyUnicode_InternFromString("config");
  static Object* const selection = Py().PyUnicode_InternFromString("_attn_implementation_internal");
  const Ref own(Py().PyObject_GenericGetDict(module, nullptr));
  if (!own) {
    Py().PyErr_Clear();
    return 0;
  }
  uint64_t state = reinterpret_cast<uintptr_t>(Py().PyDict_GetItem(own.get(), training));
  Object* const config = Py().PyDict_GetItem(own.get(), config_name);
  if (config == nullptr || config == Py().none) return state;
  const Ref fields(Py().PyObject_GenericGetDict(config, nullptr));
  if (!fields) {
    Py().PyErr_Clear();
    return state;
  }
  return Mix(state, reinterpret_cast<uintptr_t>(Py().PyDict_GetItem(fields.get(), selection)));
}

int FindModuleFrame(Object* const* frames, int count) noexcept {
  if (!LocalsReadable()) return -1;
  for (int i = 0; i < count; ++i) {
    if (!FirstVariableIs(frames[i], "self")) continue;
    const Ref self = ModuleOfFrame(frames[i]);
    if (self && IsModule(self.get()) && !IsPyTorchShell(self.get())) return i;
  }
  return -1;
}

ModuleFacts ReadModuleFacts(Object* const* frames, int count, int module_frame) noexcept {
  ModuleFacts facts;
  const Ref module = ModuleOfFrame(frames[module_frame]);
  if (!module || !IsModule(module.get())) return facts;
  facts.class_name = TypeName(TypeOf(module.get()));
  facts.class_module = TypeModule(TypeOf(module.get()));
  facts.is_causal = Truth(PlainAttribute(module.get(), "is_causal"));
  facts.training = Truth(PlainAttribute(module.get(), "training"));
  for (const char* const name : {"layer_idx", "layer_id", "layer_index", "layer_number"}) {
    Object* const layer = OwnAttribute(module.get(), name);
    if (layer != nullptr && TypeOf(layer) == Py().long_type) {
      facts.layer = static_cast<int32_t>(Py().PyLong_AsLong(layer));
      break;
    }
  }
  Object* const config = ReadSelection(frames, count, module_frame, &facts);
  if (facts.selection_state != spool::SelectionState::kNotAttention) {
    DropUncertainSelection(frames, module_frame, module.get(), &facts);
  }
  if (facts.selection_state == spool::SelectionState::kUnset) facts.built_path = BuiltAt(module.get());
  // Transformers' contract: attention_function(module, query, key, value, attention_mask, ...).
  int function_frame = -1;
  for (int i = module_frame - 1; i >= 0; --i) {
    if (FirstVariableIs(frames[i], "module") && LocalByName(frames[i], "module").get() == module.get()) {
      function_frame = i;
      break;
    }
  }
  if (function_frame >= 0) facts.function = FunctionOfFrame(frames[function_frame]);
  facts.attention_mask = MaskType(frames[function_frame >= 0 ? function_frame : module_frame]);
  ReadModels(frames, count, module_frame, config, &facts);
  if (facts.output_attentions.empty() && AskedForAttentions(frames, count)) facts.output_attentions = "argument";
  return facts;
}

}  // namespace attntrace
