#include "collectors/flex_facts.h"

#include <algorithm>

#include "collectors/module_facts.h"
#include "collectors/python_api.h"

namespace attntrace {
namespace {

using python::Object;
using python::OwnAttribute;
using python::Py;
using python::Ref;

constexpr const char* kFlexModule = "torch.nn.attention.flex_attention";
constexpr int kDeepest = 64;

Ref Top() noexcept {
  Object* const frame = Py().PyEval_GetFrame();
  if (frame != nullptr) Py().Py_IncRef(frame);
  return Ref(frame);
}

bool IsFlex(Object* frame) noexcept {
  return python::FunctionNameOf(frame) == "flex_attention" && python::ModuleNameOf(frame) == kFlexModule;
}

Ref FlexFrame() noexcept {
  Ref frame = Top();
  for (int i = 0; i < kDeepest && frame; ++i) {
    if (IsFlex(frame.get())) return frame;
    frame = Ref(Py().PyFrame_GetBack(frame.get()));
  }
  return Ref();
}

std::string Name(Object* function) noexcept { return function == nullptr ? std::string() : python::FunctionName(function); }

bool EndsWith(const std::string& text, const char* end) noexcept {
  const std::string_view tail(end);
  return text.size() >= tail.size() && std::string_view(text).substr(text.size() - tail.size()) == tail;
}

bool IsTrue(Object* value) noexcept { return value != nullptr && value == Py().true_object; }

// torch._dynamo.config.<name> as it stands: what the program set, else nothing.
Ref Configured(const char* name) noexcept {
  Object* const module = python::LoadedModule("torch._dynamo.config");
  Object* const all = module != nullptr ? OwnAttribute(module, "_config") : nullptr;
  if (all == nullptr || python::TypeOf(all) != Py().dict_type) return Ref();
  Object* const entry = Py().PyDict_GetItemString(all, name);
  Object* const set = entry != nullptr ? OwnAttribute(entry, "user_override") : nullptr;
  if (set == nullptr) return Ref();
  Object* value = set;
  if (python::TypeOf(set) == Py().context_variable_type && Py().PyContextVar_Get != nullptr) {  // PyTorch 2.15
    if (Py().PyContextVar_Get(set, nullptr, &value) == 0) return Ref(value);
    Py().PyErr_Clear();
    return Ref();
  }
  Py().Py_IncRef(value);
  return Ref(value);
}

std::string LongText(Object* value) noexcept {
  return value != nullptr && python::TypeOf(value) == Py().long_type ? std::to_string(Py().PyLong_AsLong(value))
                                                                     : std::string();
}

// Without the compile's number in front, and only the first line: "0/1: tensor 'query' size mismatch at index 2. expected 128,
// ..."
std::string GuardOf(std::string text) noexcept {
  if (const size_t colon = text.find(": "); colon < 8) text = text.substr(colon + 2);
  return text.substr(0, text.find('\n'));
}

// Of a code object whose guards kept failing; false where none did.
bool ReadFailures(Object* code, VariantFacts* facts) {
  Object* const utils = python::LoadedModule("torch._dynamo.utils");
  Object* const failures = utils != nullptr ? OwnAttribute(utils, "guard_failures") : nullptr;
  if (failures == nullptr || Py().PyType_IsSubtype(python::TypeOf(failures), Py().dict_type) == 0) return false;
  Object* const texts = Py().PyDict_GetItem(failures, code);
  if (texts == nullptr || python::TypeOf(texts) != Py().list_type || Py().PyList_Size(texts) <= 0) return false;
  const intptr_t count = Py().PyList_Size(texts);
  facts->emplace_back("dynamo.recompiles", std::to_string(count));
  facts->emplace_back("dynamo.guard", GuardOf(python::Text(Py().PyList_GetItem(texts, count - 1))));
  return true;
}

// The innermost such function of the stack from flex_attention outwards.
void ReadRecompiles(Object* flex_frame, VariantFacts* facts) {
  Py().Py_IncRef(flex_frame);
  Ref frame(flex_frame);
  for (int i = 0; i < kDeepest && frame; ++i) {
    const Ref code(Py().PyFrame_GetCode(frame.get()));
    if (ReadFailures(code.get(), facts)) {
      facts->emplace_back("dynamo.recompiled", python::FunctionNameOf(frame.get()));
      return;
    }
    frame = Ref(Py().PyFrame_GetBack(frame.get()));
  }
}

// The newest graph break whose place is in a function of this stack.
void ReadBreaks(Object* flex_frame, VariantFacts* facts) {
  Object* const utils = python::LoadedModule("torch._dynamo.utils");
  Object* const breaks = utils != nullptr ? OwnAttribute(utils, "graph_break_reasons") : nullptr;
  if (breaks == nullptr || python::TypeOf(breaks) != Py().list_type) return;
  std::vector<std::string> files;
  Py().Py_IncRef(flex_frame);
  Ref frame(flex_frame);
  for (int i = 0; i < kDeepest && frame; ++i) {
    const Ref code(Py().PyFrame_GetCode(frame.get()));
    const Ref file(Py().PyObject_GetAttrString(code.get(), "co_filename"));
    if (file) files.push_back(python::Text(file.get()));
    frame = Ref(Py().PyFrame_GetBack(frame.get()));
  }
  const intptr_t count = Py().PyList_Size(breaks);
  for (intptr_t i = count; i-- > 0 && count - i < 64;) {
    Object* const one = Py().PyList_GetItem(breaks, i);
    Object* const stack = OwnAttribute(one, "user_stack");
    if (stack == nullptr || Py().PyType_IsSubtype(python::TypeOf(stack), Py().list_type) == 0) continue;
    const intptr_t depth = Py().PyList_Size(stack);
    if (depth == 0) continue;
    Object* const innermost = Py().PyList_GetItem(stack, depth - 1);
    const Ref file(Py().PyObject_GetAttrString(innermost, "filename")), line(Py().PyObject_GetAttrString(innermost, "lineno"));
    if (!file || !line) {
      Py().PyErr_Clear();
      continue;
    }
    bool here = false;
    for (intptr_t level = 0; level < depth && !here; ++level) {
      const Ref at(Py().PyObject_GetAttrString(Py().PyList_GetItem(stack, level), "filename"));
      const std::string text = at ? python::Text(at.get()) : std::string();
      for (const std::string& known : files) here = here || known == text;
    }
    if (!here) continue;
    std::string reason = python::Text(OwnAttribute(one, "reason"));
    facts->emplace_back("dynamo.break", reason.substr(0, reason.find('\n')));
    facts->emplace_back("dynamo.break_at", python::Text(file.get()) + ":" + LongText(line.get()));
    return;
  }
}

void ReadSwitches(VariantFacts* facts) {
  Object* const flex = python::LoadedModule(kFlexModule);
  if (flex != nullptr && IsTrue(OwnAttribute(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG")))
    facts->emplace_back("flex.debug", "on");
  if (IsTrue(Configured("disable").get())) facts->emplace_back("dynamo.disable", "config");
  if (IsTrue(Configured("suppress_errors").get())) facts->emplace_back("dynamo.suppress_errors", "config");
  Object* const frames = python::LoadedModule("torch._dynamo.eval_frame");
  Object* const stance = frames != nullptr ? OwnAttribute(frames, "_stance") : nullptr;
  if (stance == nullptr) return;
  const std::string name = python::Text(OwnAttribute(stance, "stance"));
  if (!name.empty() && name != "default") facts->emplace_back("dynamo.stance", name);
}

// The innermost frame outside PyTorch.
Ref CallerOf(Object* flex_frame) noexcept {
  Ref frame(Py().PyFrame_GetBack(flex_frame));
  for (int i = 0; i < 6 && frame && python::ModuleNameOf(frame.get()).compare(0, 6, "torch.") == 0; ++i) {
    frame = Ref(Py().PyFrame_GetBack(frame.get()));
  }
  return frame;
}

// By which name of its module the caller reaches the function: its own, or PyTorch's module, which is asked at every call.
void ReadName(Object* caller, VariantFacts* facts) {
  Object* const module = python::LoadedModule(kFlexModule);
  Object* const function = module != nullptr ? OwnAttribute(module, "flex_attention") : nullptr;
  const Ref globals = python::GlobalsOf(caller);
  if (function == nullptr || !globals || python::TypeOf(globals.get()) != Py().dict_type) return;
  intptr_t at = 0;
  Object *key = nullptr, *value = nullptr;
  while (Py().PyDict_Next(globals.get(), &at, &key, &value) != 0) {
    if (value != function && value != module) continue;
    facts->emplace_back("flex.reached_as", python::Text(key) + (value == module ? ".flex_attention" : ""));
    return;
  }
}

FlexArguments ReadArguments(Object* flex_frame, VariantFacts* facts) {
  FlexArguments arguments;
  if (const Ref mask = LocalNamed(flex_frame, "block_mask")) {
    // None was replaced by one whose mask_mod lets everything through.
    const std::string mod = mask.get() == Py().none ? std::string() : Name(OwnAttribute(mask.get(), "mask_mod"));
    arguments.mask = mask.get() == Py().none || EndsWith(mod, ":noop_mask") ? MaskKind::kNone : MaskKind::kBlockMask;
    if (facts != nullptr && arguments.mask == MaskKind::kBlockMask && !mod.empty()) facts->emplace_back("flex.mask_mod", mod);
  }
  if (const Ref score = LocalNamed(flex_frame, "score_mod"); score && score.get() != Py().none) {
    const std::string mod = Name(score.get());
    arguments.score_mod = !EndsWith(mod, ":_identity");
    if (facts != nullptr && arguments.score_mod && !mod.empty()) facts->emplace_back("flex.score_mod", mod);
  }
  const Ref caller = CallerOf(flex_frame);
  if (!caller) return arguments;
  arguments.causal_asked = IsTrue(LocalNamed(caller.get(), "is_causal").get());
  if (facts != nullptr) ReadName(caller.get(), facts);
  return arguments;
}

}  // namespace

Ref LocalNamed(Object* frame, const char* name) noexcept {
  const int index = LocalIndex(frame, name);
  return index < 0 ? Ref() : python::Local(frame, index, name);
}

Object* FlexFrameOf(Object* const* frames, int count) noexcept {
  Object* const* const at = std::find_if(frames, frames + count, IsFlex);
  return at == frames + count ? nullptr : *at;
}

FlexArguments ReadFlex(VariantFacts* facts) noexcept {
  if (!python::CanEnter()) return {};
  const python::Section gil;
  const Ref frame = FlexFrame();
  if (facts != nullptr) ReadSwitches(facts);
  FlexArguments arguments;
  if (frame) arguments = ReadArguments(frame.get(), facts);
  if (facts != nullptr) {
    const Ref start = frame ? Ref() : Top();
    Object* const from = frame ? frame.get() : start.get();
    if (from != nullptr) {
      ReadRecompiles(from, facts);
      ReadBreaks(from, facts);
    }
  }
  return arguments;
}

Ref BlockMaskOfFlex() noexcept {
  const Ref frame = FlexFrame();
  return frame ? LocalNamed(frame.get(), "block_mask") : Ref();
}

void ReadLimit(Object* const* frames, int count, VariantFacts* facts) noexcept {
  for (int i = 0; i < count && i < 8; ++i) {  // raised by _compile itself
    if (python::FunctionNameOf(frames[i]) != "_compile" || python::ModuleNameOf(frames[i]) != "torch._dynamo.convert_frame")
      continue;
    const Ref code = LocalNamed(frames[i], "code");
    const Ref name = code ? Ref(Py().PyObject_GetAttrString(code.get(), "co_name")) : Ref();
    if (!name) return Py().PyErr_Clear();
    facts->emplace_back("dynamo.recompiled", python::Text(name.get()));
    ReadFailures(code.get(), facts);
    return;
  }
}

bool BlocksFullGrid() noexcept {
  if (!python::CanEnter()) return false;
  const python::Section gil;
  Ref frame = Top();
  for (int i = 0; i < 3 && frame; ++i) {
    if (python::FunctionNameOf(frame.get()) == "_convert_mask_to_block_mask" &&
        python::ModuleNameOf(frame.get()) == kFlexModule) {
      return true;
    }
    frame = Ref(Py().PyFrame_GetBack(frame.get()));
  }
  return false;
}

}  // namespace attntrace
