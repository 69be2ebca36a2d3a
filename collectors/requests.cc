#include "collectors/requests.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "collectors/built.h"

namespace attntrace {
namespace {

using python::ClassAttribute;
using python::Object;
using python::Py;
using python::Ref;
using python::TypeOf;

// Stacks looked at, ever: weights are drawn once, dropout and noise (where no module is in the making) for ever.
constexpr int kLooks = 20000, kIdleLooks = 2000;
constexpr int kDeepest = 64;
constexpr int kSourceReaders = 24;  // frames of Python's library below set_attn_implementation, which looks into a source
constexpr const char* kChanged = "_can_set_attn_implementation_cached_value";
constexpr size_t kSources = 1000;
constexpr int kNested = 3;  // configurations in configurations

struct Request {
  std::string whole;                              // for the whole model
  std::map<std::string, std::string> parts;       // by the name of the part's configuration; "" is the model's own
  std::map<std::string, std::string> configured;  // likewise: what the configurations said while the model was made

  bool Explicit() const noexcept { return !whole.empty() || !parts.empty(); }
};

struct Books {
  // A model's address may come back as another's, which is then noted in its place; of one that was copied, its class's newest
  // is known.
  std::map<std::pair<std::string, const void*>, Request> by_model;
  std::map<std::string, Request> by_class;
  std::map<std::string, Request> by_source;  // of from_pretrained, which draws no weights: by the name or folder it was given
};

std::mutex g_mutex;  // never held while the GIL is taken
Books& All() noexcept {
  static auto* const books = new Books;
  return *books;
}

void Note(const std::string& model, const void* address, Request request) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  All().by_class[model] = request;
  All().by_model[{model, address}] = std::move(request);
}

Request Known(const std::string& model, const void* address, const std::string& source) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  const auto loaded = All().by_source.find(source);
  if (!source.empty() && loaded != All().by_source.end()) return loaded->second;
  if (const auto one = All().by_model.find({model, address}); one != All().by_model.end()) return one->second;
  const auto other = All().by_class.find(model);
  Request newest = other == All().by_class.end() ? Request() : other->second;
  newest.configured.clear();  // each model's own
  return newest;
}

// `attn_implementation` among the keyword arguments that a frame still holds.
Object* Asked(Object* frame) noexcept {
  for (const char* const name : {"kwargs", "model_kwargs"}) {
    const int index = LocalIndex(frame, name);
    const Ref arguments = index < 0 ? Ref() : python::Local(frame, index, name);
    if (!arguments || TypeOf(arguments.get()) != Py().dict_type) continue;
    Object* const value = Py().PyDict_GetItemString(arguments.get(), "attn_implementation");
    if (value != nullptr && value != Py().none) return value;  // the frame keeps it alive
  }
  return nullptr;
}

bool MakesModels(const std::string& function) noexcept {
  return function == "from_config" || function == "_from_config" || function == "from_pretrained";
}

void ReadValue(Object* value, Request* request) {
  if (python::IsString(value)) {
    request->whole = python::Text(value);
    request->parts.clear();
  } else if (TypeOf(value) == Py().dict_type) {
    intptr_t at = 0;
    Object *key = nullptr, *part = nullptr;
    while (Py().PyDict_Next(value, &at, &key, &part) != 0) request->parts[python::Text(key)] = python::Text(part);
  }
}

Ref Top() noexcept {
  Object* const frame = Py().PyEval_GetFrame();
  if (frame != nullptr) Py().Py_IncRef(frame);
  return Ref(frame);
}

std::string SelectionOf(Object* config) noexcept {
  return python::Text(python::OwnAttribute(config, "_attn_implementation_internal"));
}

// Names of a configuration's parts, as keys; null where it has none.
Object* PartsOf(Object* config) noexcept {
  // The first is made up when it is asked for in Transformers 5.24, from the second.
  for (const char* const name : {"sub_configs", "sub_configs_defaults"}) {
    Object* const parts = ClassAttribute(TypeOf(config), name);
    if (parts != nullptr && TypeOf(parts) == Py().dict_type) return parts;
  }
  return nullptr;
}

void ReadConfigured(Object* model, Request* request) {
  Object* const config = python::OwnAttribute(model, "config");
  if (config == nullptr || config == Py().none) return;
  request->configured[""] = SelectionOf(config);
  Object* const parts = PartsOf(config);
  if (parts == nullptr) return;
  intptr_t at = 0;
  Object *key = nullptr, *type = nullptr;
  while (Py().PyDict_Next(parts, &at, &key, &type) != 0) {
    const std::string name = python::Text(key);
    Object* const part = python::OwnAttribute(config, name.c_str());
    if (part != nullptr && part != Py().none) request->configured[name] = SelectionOf(part);
  }
}

struct Stack {  // innermost first
  Ref owned[kDeepest];
  Object* frames[kDeepest];
  int count = 0;

  Stack() noexcept {
    Object* const top = Py().PyEval_GetFrame();
    if (top == nullptr) return;
    Py().Py_IncRef(top);
    for (Ref frame(top); frame && count < kDeepest; ++count) {
      frames[count] = frame.get();
      owned[count] = std::move(frame);
      frame = Ref(Py().PyFrame_GetBack(frames[count]));
    }
  }
};

// The outermost model that is being made on this stack, and what was asked for it. False: none is.
bool FindConstruction(const Stack& stack, std::string* model, const void** address, Request* request) {
  for (int i = 0; i < stack.count; ++i) {
    Object* const frame = stack.frames[i];
    const std::string function = python::FunctionNameOf(frame);
    if (function == "__init__" && LocalIndex(frame, "self") == 0) {
      const Ref self = ModuleOfFrame(frame);
      if (self && ClassAttribute(TypeOf(self.get()), "_supports_sdpa") != nullptr) {
        *model = python::TypeName(TypeOf(self.get()));
        *address = self.get();
        ReadConfigured(self.get(), request);
      }
    } else if (MakesModels(function)) {
      if (Object* const value = Asked(frame); value != nullptr) ReadValue(value, request);
    }
  }
  return !model->empty();
}

// What from_pretrained was given.
std::string SourceOf(Object* config) noexcept {
  return config == nullptr ? std::string() : python::Text(python::OwnAttribute(config, "_name_or_path"));
}

// Name under which `root` holds the configuration `config`, itself or further down; by its class where `config` is null.
std::string KeyOf(Object* root, Object* config, const std::string& config_class, int depth) noexcept {
  Object* const parts = PartsOf(root);
  if (parts == nullptr) return {};
  intptr_t at = 0;
  Object *key = nullptr, *type = nullptr;
  while (Py().PyDict_Next(parts, &at, &key, &type) != 0) {
    const std::string name = python::Text(key);
    Object* const part = python::OwnAttribute(root, name.c_str());
    if (part == nullptr || part == Py().none) continue;
    const bool found = config != nullptr ? part == config : python::TypeName(TypeOf(part)) == config_class;
    if (found || (depth > 1 && !KeyOf(part, config, config_class, depth - 1).empty())) return name;
  }
  return {};
}

}  // namespace

void NoteConstruction() noexcept {
  static std::atomic<int> looks{0}, idle{0};
  if (looks.load(std::memory_order_relaxed) >= kLooks || idle.load(std::memory_order_relaxed) >= kIdleLooks) return;
  if (!python::CanEnter() || !python::LocalsReadable()) return;
  std::string model;
  const void* address = nullptr;
  Request request;
  {
    const python::Section gil;
    if (python::LoadedModule("transformers.modeling_utils") == nullptr) return;
    looks.fetch_add(1, std::memory_order_relaxed);
    const Stack stack;
    if (!NoteBuilt(stack.frames, stack.count)) idle.fetch_add(1, std::memory_order_relaxed);
    if (!FindConstruction(stack, &model, &address, &request)) return;
  }
  Note(model, address, std::move(request));
}

void NoteLoading() noexcept {
  if (!python::LocalsReadable() || python::LoadedModule("transformers.modeling_utils") == nullptr) return;
  Request request;
  std::string source;
  Ref frame = Top();
  for (int i = 0; i < kDeepest && frame; ++i) {
    Object* const value = python::FunctionNameOf(frame.get()) == "from_pretrained" ? Asked(frame.get()) : nullptr;
    const int index = value == nullptr ? -1 : LocalIndex(frame.get(), "pretrained_model_name_or_path");
    if (index >= 0) {
      source = python::Text(python::Local(frame.get(), index, "pretrained_model_name_or_path").get());
      ReadValue(value, &request);
    }
    frame = Ref(Py().PyFrame_GetBack(frame.get()));
  }
  if (source.empty()) return;
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (All().by_source.size() < kSources) All().by_source[source] = std::move(request);
}

void NoteReselection() noexcept {
  if (!python::LocalsReadable() || python::LoadedModule("transformers.modeling_utils") == nullptr) return;
  Ref frame = Top();
  for (int i = 0; i < kSourceReaders && frame; ++i) {
    if (python::FunctionNameOf(frame.get()) == "set_attn_implementation" &&
        python::ModuleNameOf(frame.get()) == "transformers.modeling_utils") {
      const Ref self = ModuleOfFrame(frame.get());
      const int index = LocalIndex(frame.get(), "attn_implementation");
      const Ref value = index < 0 ? Ref() : python::Local(frame.get(), index, "attn_implementation");
      if (!self || !value) return;
      const std::string model = python::TypeName(TypeOf(self.get()));
      Request request = Known(model, self.get(), SourceOf(python::OwnAttribute(self.get(), "config")));
      ReadValue(value.get(), &request);
      return Note(model, self.get(), std::move(request));
    }
    frame = Ref(Py().PyFrame_GetBack(frame.get()));
  }
}

void ReadRequest(Object* root, Object* root_config, Object* part_model, Object* config, ModuleFacts* facts) noexcept {
  if (config != root_config) {
    facts->part_config = KeyOf(root_config, config, "", kNested);
    if (facts->part_config.empty()) facts->part_config = KeyOf(root_config, nullptr, facts->config_class, kNested);
  }
  const Request request = Known(python::TypeName(TypeOf(root)), root, SourceOf(root_config));
  const auto part = request.parts.find(facts->part_config);
  const bool named = part != request.parts.end();
  facts->requested = named ? part->second : request.whole;
  facts->requested_by = facts->requested.empty() ? "" : named ? "dict" : "name";
  const auto configured = request.configured.find(facts->part_config);
  if (!request.Explicit() && configured != request.configured.end() && !configured->second.empty()) {
    facts->requested = configured->second;
    facts->requested_by = "config";
  }
  // From Transformers 5 on no event tells of set_attn_implementation. It leaves its mark on each class that took a selection,
  // and nothing of what was asked for.
  Object* const changed = ClassAttribute(TypeOf(facts->part_config.empty() ? root : part_model), kChanged);
  if (facts->requested == facts->selection || changed != Py().true_object) return;
  facts->requested.clear();
  facts->requested_by = "call";
}

}  // namespace attntrace
