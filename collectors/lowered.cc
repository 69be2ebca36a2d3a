#include "collectors/lowered.h"

#include <ATen/SequenceNumber.h>
#include <ATen/core/grad_mode.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "collectors/calls.h"
#include "collectors/fork.h"
#include "collectors/module_facts.h"
#include "collectors/python_api.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

using python::Object;
using python::Py;
using python::Ref;

struct Lowered {
  int calls = 0;      // of flex templates, by one run of the region
  bool only = false;  // the region computes nothing beside them
};

std::mutex g_mutex;
std::atomic<bool> g_any{false};
std::unordered_map<std::string, Lowered>& All() noexcept {
  static auto* const all = new std::unordered_map<std::string, Lowered>;
  return *all;
}

// Whether generated code is being loaded, and the compile it belongs to as "frame/recompile": from the frames that do it.
bool LoadsInductorCode(std::string* compile_id) {
  Object* const top = Py().PyEval_GetFrame();
  if (top == nullptr) return false;
  if (python::FunctionNameOf(top) != "_reload_python_module") return false;
  Py().Py_IncRef(top);
  Ref frame(top);
  for (int i = 0; i < 200 && frame; ++i) {
    if (python::FunctionNameOf(frame.get()) == "_compile" &&
        python::ModuleNameOf(frame.get()) == "torch._dynamo.convert_frame") {
      const int index = LocalIndex(frame.get(), "compile_id");
      const Ref id = index < 0 ? Ref() : python::Local(frame.get(), index, "compile_id");
      if (!id) return true;
      // Slots of a dataclass of PyTorch's: reading them runs nothing.
      const Ref number(Py().PyObject_GetAttrString(id.get(), "frame_id"));
      const Ref again(Py().PyObject_GetAttrString(id.get(), "frame_compile_id"));
      Py().PyErr_Clear();
      if (!number || !again || python::TypeOf(number.get()) != Py().long_type ||
          python::TypeOf(again.get()) != Py().long_type) {
        return true;
      }
      *compile_id = std::to_string(Py().PyLong_AsLong(number.get())) + "/" + std::to_string(Py().PyLong_AsLong(again.get()));
      return true;
    }
    frame = Ref(Py().PyFrame_GetBack(frame.get()));
  }
  return true;
}

bool IsNameCharacter(char c) noexcept {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Kernels are defined as `NAME = async_compile.cpp_pybinding(...)`, with their C++ in it, and called below `def call`.
Lowered ReadCode(std::string_view code) {
  constexpr std::string_view kDefines = " = async_compile.cpp_pybinding(";
  Lowered lowered;
  size_t call = code.find("def call(");
  if (call == std::string_view::npos) return lowered;
  const std::string_view body = code.substr(call, code.find("\ndef ", call) - call);
  int kernels = 0, flex = 0;
  for (size_t at = code.find(kDefines); at < call; at = code.find(kDefines, at + 1)) {
    size_t start = at;
    while (start > 0 && IsNameCharacter(code[start - 1])) --start;
    const std::string_view name = code.substr(start, at - start);
    const std::string_view text = code.substr(at, std::min(code.find(kDefines, at + 1), call) - at);
    // The template's own blocking. A kernel that only stands beside it is named after flex_attention too, and in PyTorch 2.6
    // the template itself is not.
    const bool is_flex = text.find("kvSplitSize") != std::string_view::npos;
    const std::string calls = std::string(name) + "(";
    for (size_t use = body.find(calls); use != std::string_view::npos; use = body.find(calls, use + 1)) {
      ++kernels;
      flex += is_flex ? 1 : 0;
    }
  }
  lowered.calls = flex;
  // A block mask that holds everything is filled in beside the call, by one small kernel.
  lowered.only = flex == 1 && kernels <= 2 && body.find("extern_kernels") == std::string_view::npos;
  return lowered;
}

}  // namespace

void NoteCompiledSource(Object* source) noexcept {
  const bool bytes = source != nullptr && python::TypeOf(source) == Py().bytes_type;  // as CPython's parser gets it
  if (!bytes && !python::IsString(source)) return;
  std::string id;
  if (!LoadsInductorCode(&id) || id.empty()) return;
  const char* const text = bytes ? Py().PyBytes_AsString(source) : Py().PyUnicode_AsUTF8(source);
  if (text == nullptr) return Py().PyErr_Clear();
  const Lowered lowered = ReadCode(text);
  const std::lock_guard<std::mutex> lock(g_mutex);
  if (lowered.calls > 0) {
    All()[id] = lowered;
    g_any.store(true, std::memory_order_relaxed);
  } else {
    All().erase(id);  // after torch._dynamo.reset() numbers start anew
  }
}

void BeginLoweredRegion(ThreadState* state, const char* event_name) noexcept {
  if (!g_any.load(std::memory_order_relaxed) || state->lowered.depth != 0) return;
  const char* const colon = strstr(event_name, ": ");
  if (colon == nullptr) return;
  Lowered lowered;
  {
    const std::lock_guard<std::mutex> lock(g_mutex);
    const auto known = All().find(colon + 2);
    if (known == All().end()) return;
    lowered = known->second;
  }
  AttachAfterFork();
  LoweredRegion& region = state->lowered;
  region.depth = state->compiled_depth;
  region.calls = lowered.calls;
  region.only = lowered.only;
  region.start_ns = MonotonicNs();
  region.first_sequence = static_cast<int64_t>(at::sequence_number::peek());
  const Inside ours(state);
  region.site = Where(&state->Caches().paths, true);
  if (!state->memory.Open(&region.meter, 0, 0)) region.meter.space = -1;
}

void EndLoweredRegion(ThreadState* state) noexcept {
  LoweredRegion& region = state->lowered;
  if (region.depth == 0 || region.depth != state->compiled_depth) return;
  region.depth = 0;
  CallRecord record;
  record.site = region.site;
  record.op = "flex_attention";
  record.kernel_op = "compiled by Inductor";
  record.phase = ForwardPhase(*state);
  record.backend = Backend::kFlexCpp;
  record.path_kind = PathKind::kFused;
  record.mask_kind = MaskKind::kUnknown;
  if (at::GradMode::is_enabled()) record.flags |= spool::kGradMode;
  record.space = 0;
  record.host_ns = region.only ? ElapsedSince(region.start_ns) : 0;
  if (region.meter.space >= 0) {
    // Of a region with more in it the peak is not the attention's, and is left out.
    if (region.only) TakeMeter(*state, region.meter, &record);
    state->memory.Close(&region.meter);
  }
  const Inside ours(state);
  const auto end = static_cast<int64_t>(at::sequence_number::peek());
  for (int i = 0; i < region.calls; ++i) {
    CommitForward(state, record, region.first_sequence, (record.flags & spool::kGradMode) != 0 ? end : -1, 0);
    record.allocated_bytes = 0;
  }
}

}  // namespace attntrace
