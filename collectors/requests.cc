#include "collectors/requests.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "collectors/built.h"

namespace attntrace {
namespace {

using python::Object;
using python::Py;
using python::Ref;

// Stacks looked at, ever: weights are drawn once, dropout and noise (where no module is in the making) for ever.
constexpr int kLooks = 20000, kIdleLooks = 2000;
constexpr int kDeepest = 64;

struct Request {
  std::string whole;                         // for the whole model
  std::map<std::string, std::string> parts;  // by the name of the part's configuration; "" is the model's own
  bool by_dict = false;
};

std::mutex g_mutex;  // never held while the GIL is taken
std::map<std::string, Request>& ByModel() noexcept {
  static auto* const requests = new std::map<std::string, Request>;
  return *requests;
}

// `attn_implementation` among the keyword arguments that a frame still holds.
Object* Asked(Object* frame) noexcept {
  for (const char* const name : {"kwargs", "model_kwargs"}) {
    const int index = LocalIndex(frame, name);
    const Ref arguments = index < 0 ? Ref() : python::Local(frame, index, name);
    if (!arguments || python::TypeOf(arguments.get()) != Py().dict_type) continue;
    Object* const value = Py().PyDict_GetItemString(arguments.get(), "attn_implementation");
    if (value != nullptr && value != Py().none) return value;  // the frame keeps it alive
  }
  return nullptr;
}

bool MakesModels(const std::string& function) noexcept {
  return function == "from_config" || function == "_from_config" || function == "from_pretrained";
}

Request ReadValue(Object* value) {
  Request request;
  if (python::IsString(value)) {
    request.whole = python::Text(value);
  } else if (python::TypeOf(value) == Py().dict_type) {
    request.by_dict = true;
    intptr_t at = 0;
    Object *key = nullptr, *part = nullptr;
    while (Py().PyDict_Next(value, &at, &key, &part) != 0) request.parts[python::Text(key)] = python::Text(part);
  }
  return request;
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
bool FindConstruction(const Stack& stack, std::string* model, Request* request) {
  for (int i = 0; i < stack.count; ++i) {
    Object* const frame = stack.frames[i];
    const std::string function = python::FunctionNameOf(frame);
    if (function == "__init__" && LocalIndex(frame, "self") == 0) {
      const Ref self = ModuleOfFrame(frame);
      if (self && python::ClassAttribute(python::TypeOf(self.get()), "_supports_sdpa") != nullptr) {
        *model = python::TypeName(python::TypeOf(self.get()));
      }
    } else if (MakesModels(function)) {
      if (Object* const value = Asked(frame); value != nullptr) *request = ReadValue(value);
    }
  }
  return !model->empty();
}

}  // namespace

void NoteConstruction() noexcept {
  static std::atomic<int> looks{0}, idle{0};
  if (looks.load(std::memory_order_relaxed) >= kLooks || idle.load(std::memory_order_relaxed) >= kIdleLooks) return;
  if (!python::CanEnter() || !python::LocalsReadable()) return;
  std::string model;
  Request request;
  {
    const python::Section gil;
    if (python::LoadedModule("transformers.modeling_utils") == nullptr) return;
    looks.fetch_add(1, std::memory_order_relaxed);
    const Stack stack;
    if (!NoteBuilt(stack.frames, stack.count)) idle.fetch_add(1, std::memory_order_relaxed);
    if (!FindConstruction(stack, &model, &request)) return;
  }
  const std::lock_guard<std::mutex> lock(g_mutex);
  ByModel()[model] = std::move(request);
}

void ReadRequest(Object* root, Object* root_config, ModuleFacts* facts) noexcept {
  Request request;
  {
    const std::lock_guard<std::mutex> lock(g_mutex);
    const auto known = ByModel().find(python::TypeName(python::TypeOf(root)));
    if (known == ByModel().end()) return;
    request = known->second;
  }
  if (!request.by_dict) {
    facts->requested = request.whole;
    facts->requested_by = request.whole.empty() ? "" : "name";
    return;
  }
  facts->requested_by = "dict";
  const auto own = request.parts.find("");
  if (own != request.parts.end()) facts->requested = own->second;
  for (const auto& [name, implementation] : request.parts) {
    Object* const part = name.empty() ? nullptr : python::OwnAttribute(root_config, name.c_str());
    if (part != nullptr && python::TypeName(python::TypeOf(part)) == facts->config_class) facts->requested = implementation;
  }
}

}  // namespace attntrace
