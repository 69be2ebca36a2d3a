#include "collectors/call_path.h"

#include <dlfcn.h>
#include <unwind.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "collectors/module_facts.h"
#include "collectors/python_api.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

using python::Object;
using python::Py;
using python::Ref;

struct FrameText {
  spool::FrameKind kind = spool::FrameKind::kPython;
  std::string file, function, module;
  int32_t line = 0;
  uint64_t offset = 0;
};

struct Tables {
  std::mutex mutex;  // taken without the GIL or with it, but never the GIL inside it
  std::unordered_map<uint64_t, CachedPath> paths;
  std::unordered_map<uint64_t, CachedModule> modules;
  std::unordered_map<uint64_t, uint32_t> frames;
  std::unordered_map<uint64_t, uint32_t> kinds;  // ModuleDef contents -> kModule id
  uint32_t next_frame = 1, next_path = 1, next_module = 1;
};

Tables& All() noexcept {
  static Tables* const tables = new Tables;
  return *tables;
}

int g_depth = 64;

uint64_t Hash(uint64_t hash, const std::string& text) noexcept { return Mix(hash, std::hash<std::string>{}(text)); }

uint32_t DefineFrame(Tables& tables, const FrameText& frame) noexcept {  // under the lock
  const spool::FrameDef def{
      frame.kind,  Spool().Intern(frame.file), Spool().Intern(frame.function), Spool().Intern(frame.module), frame.line, 0,
      frame.offset};
  uint64_t key = Mix(Mix(Mix(Mix(def.file, def.function), def.module), static_cast<uint64_t>(def.line)), def.offset);
  const auto [at, fresh] = tables.frames.try_emplace(key, tables.next_frame);
  if (fresh) {
    ++tables.next_frame;
    Spool().Append(spool::RecordKind::kFrame, at->second, def);
  }
  return at->second;
}

CachedPath DefinePath(uint64_t hash, const std::vector<FrameText>& frames, uint32_t flags, int module_frame) noexcept {
  Tables& tables = All();
  const std::lock_guard<std::mutex> lock(tables.mutex);
  if (const auto known = tables.paths.find(hash); known != tables.paths.end()) return known->second;
  if (tables.next_path > kMaxPaths) return {};
  std::vector<uint32_t> ids;
  ids.reserve(frames.size());
  for (const FrameText& frame : frames) ids.push_back(DefineFrame(tables, frame));
  const spool::PathDef def{static_cast<uint32_t>(ids.size()), flags};
  CachedPath path{tables.next_path++, static_cast<int16_t>(module_frame)};
  for (const FrameText& frame : frames) {
    path.flex = path.flex || (frame.function == "sdpa_dense" && frame.module == "torch._higher_order_ops.flex_attention");
  }
  Spool().Append(spool::RecordKind::kPath, path.id, &def, sizeof(def), ids.data(), ids.size() * sizeof(uint32_t));
  tables.paths.emplace(hash, path);
  return path;
}

CachedModule DefineModule(uint64_t key, const ModuleFacts& facts) noexcept {
  spool::ModuleDef def{};
  SpoolWriter& spool = Spool();
  def.class_name = spool.Intern(facts.class_name);
  def.class_module = spool.Intern(facts.class_module);
  def.config_class = spool.Intern(facts.config_class);
  def.selection = spool.Intern(facts.selection);
  def.function = spool.Intern(facts.function);
  def.output_attentions = spool.Intern(facts.output_attentions);
  def.model_class = spool.Intern(facts.model_class);
  def.attention_mask = spool.Intern(facts.attention_mask);
  def.model_selection = spool.Intern(facts.model_selection);
  def.no_sdpa_class = spool.Intern(facts.no_sdpa_class);
  def.requested = spool.Intern(facts.requested);
  def.requested_by = spool.Intern(facts.requested_by);
  def.built_path = facts.built_path;
  def.part = spool.Intern(facts.part);
  def.part_config = spool.Intern(facts.part_config);
  def.selection_state = facts.selection_state;
  def.is_causal = facts.is_causal;
  def.training = facts.training;
  uint64_t kind = 1;
  for (const std::string* text :
       {&facts.class_name, &facts.class_module, &facts.config_class, &facts.selection, &facts.function,
        &facts.output_attentions, &facts.model_class, &facts.attention_mask, &facts.model_selection, &facts.no_sdpa_class,
        &facts.requested, &facts.requested_by, &facts.part, &facts.part_config}) {
    kind = Hash(kind, *text);
  }
  kind = Mix(kind, static_cast<uint64_t>(facts.selection_state) << 16 | (static_cast<uint64_t>(facts.is_causal) & 0xff) << 8 |
                       (static_cast<uint64_t>(facts.training) & 0xff) | static_cast<uint64_t>(facts.built_path) << 32);
  Tables& tables = All();
  const std::lock_guard<std::mutex> lock(tables.mutex);
  const auto [at, fresh] = tables.kinds.try_emplace(kind, tables.next_module);
  if (fresh) {
    ++tables.next_module;
    spool.Append(spool::RecordKind::kModule, at->second, def);
  }
  const CachedModule module{at->second, facts.layer};
  tables.modules[key] = module;
  return module;
}

FrameText ReadFrame(Object* frame) noexcept {
  FrameText text;
  const Ref code(Py().PyFrame_GetCode(frame));
  const Ref file(Py().PyObject_GetAttrString(code.get(), "co_filename"));
  Ref name(Py().PyObject_GetAttrString(code.get(), "co_qualname"));
  if (!name) {  // before 3.11
    Py().PyErr_Clear();
    name = Ref(Py().PyObject_GetAttrString(code.get(), "co_name"));
  }
  if (file) text.file = python::Text(file.get());
  if (name) text.function = python::Text(name.get());
  text.module = python::ModuleNameOf(frame);
  text.line = Py().PyFrame_GetLineNumber(frame);
  return text;
}

int PlaceIn(Object* frame) noexcept {
  return Py().PyFrame_GetLasti != nullptr ? Py().PyFrame_GetLasti(frame) : Py().PyFrame_GetLineNumber(frame);
}

// Frames of the running thread, innermost first, as strong references.
struct Stack {
  Object* frames[kMaxFrames];
  Object* codes[kMaxFrames];
  int count = 0;
  bool truncated = false;
  uint64_t hash = 0x5bd1e995;

  Stack() noexcept {
    Object* frame = Py().PyEval_GetFrame();
    if (frame != nullptr) Py().Py_IncRef(frame);
    while (frame != nullptr && count < g_depth) {
      frames[count] = frame;
      codes[count] = Py().PyFrame_GetCode(frame);
      hash = Mix(hash ^ reinterpret_cast<uintptr_t>(codes[count]), static_cast<uint64_t>(PlaceIn(frame)));
      ++count;
      frame = Py().PyFrame_GetBack(frame);
    }
    truncated = frame != nullptr;
    if (frame != nullptr) Py().Py_DecRef(frame);
  }
  ~Stack() {
    for (int i = 0; i < count; ++i) {
      Py().Py_DecRef(codes[i]);
      Py().Py_DecRef(frames[i]);
    }
  }
};

// flex_attention called plainly compiles this wrapper with the backend "eager" (torch/nn/attention/flex_attention.py).
bool IsFlexWrapper(const FrameText& frame) noexcept {
  return frame.module == "torch.nn.attention.flex_attention" &&
         frame.function.find("_flex_attention_hop_wrapper") != std::string::npos;
}

CachedPath NewPythonPath(const Stack& stack, int compiled_regions) noexcept {
  std::vector<FrameText> frames;
  for (int i = 0; i < stack.count; ++i) {
    frames.push_back(ReadFrame(stack.frames[i]));
    // A code object stays alive with its path, so that its address is never another's. Bounded by kMaxPaths.
    Py().Py_IncRef(stack.codes[i]);
  }
  for (const FrameText& frame : frames) {
    if (IsFlexWrapper(frame)) --compiled_regions;
  }
  return DefinePath(stack.hash, frames,
                    (compiled_regions > 0 ? spool::kPathCompiled : 0u) | (stack.truncated ? spool::kPathTruncated : 0u),
                    FindModuleFrame(stack.frames, stack.count));
}

CallSite PythonSite(PathCaches* caches, int compiled_regions) noexcept {
  CallSite site;
  const python::Section gil;
  Stack stack;
  if (stack.count == 0) {
    site.no_path_reason = "no Python frame on this thread";
    return site;
  }
  stack.hash = Mix(stack.hash, static_cast<uint64_t>(compiled_regions));
  const CachedPath* known = caches->paths.Find(stack.hash);
  if (known == nullptr) {
    caches->paths.Put(stack.hash, NewPythonPath(stack, compiled_regions));
    known = caches->paths.Find(stack.hash);
  }
  const CachedPath path = *known;
  site.path = path.id;
  site.flex = path.flex;
  if (path.id == 0) {
    Spool().Add(Counter::kNoCallPath);
    site.no_path_reason = "more distinct call paths than are kept";
    return site;
  }
  if (path.module_frame < 0 || path.module_frame >= stack.count) return site;
  const Ref self = ModuleOfFrame(stack.frames[path.module_frame]);
  if (!self) return site;
  const uint64_t key = Mix(Mix(stack.hash, reinterpret_cast<uintptr_t>(self.get())), ModuleState(self.get()));
  if (const CachedModule* const module = caches->modules.Find(key); module != nullptr) {
    site.module = module->id;
    site.layer = module->layer;
    return site;
  }
  // The table keeps no reference to modules, so a dead one's address may come back as another's: the facts are read again
  // whenever a thread's own cache has forgotten the pair, and a new variant re-reads them too.
  const CachedModule module = DefineModule(key, ReadModuleFacts(stack.frames, stack.count, path.module_frame));
  caches->modules.Put(key, module);
  site.module = module.id;
  site.layer = module.layer;
  return site;
}

struct NativeStack {
  uintptr_t pcs[kMaxFrames];
  int count = 0;
  bool truncated = false;
};

_Unwind_Reason_Code TakeFrame(_Unwind_Context* context, void* argument) {
  auto* const stack = static_cast<NativeStack*>(argument);
  if (stack->count >= g_depth) {
    stack->truncated = true;
    return _URC_END_OF_STACK;
  }
  int before = 0;
  uintptr_t pc = _Unwind_GetIPInfo(context, &before);
  if (pc == 0) return _URC_END_OF_STACK;
  stack->pcs[stack->count++] = before != 0 ? pc : pc - 1;  // inside the calling instruction
  return _URC_NO_REASON;
}

FrameText NativeFrame(uintptr_t pc) noexcept {
  FrameText text;
  text.kind = spool::FrameKind::kNative;
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(pc), &info) != 0) {
    text.file = info.dli_fname != nullptr ? info.dli_fname : "";
    text.function = info.dli_sname != nullptr ? info.dli_sname : "";  // mangled; names are made readable outside
    text.offset = pc - reinterpret_cast<uintptr_t>(info.dli_fbase);
  }
  return text;
}

CallSite NativeSite(PathCaches* caches, uint32_t flags) noexcept {
  CallSite site;
  NativeStack stack;
  _Unwind_Backtrace(TakeFrame, &stack);
  uint64_t hash = Mix(0x2545f491, flags);
  for (int i = 0; i < stack.count; ++i) hash = Mix(hash, stack.pcs[i]);
  if (const CachedPath* const known = caches->paths.Find(hash); known != nullptr) {
    site.path = known->id;
    return site;
  }
  std::vector<FrameText> frames;
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(&NativeSite), &own);
  bool inside = true;  // leave our own frames out
  for (int i = 0; i < stack.count; ++i) {
    FrameText frame = NativeFrame(stack.pcs[i]);
    inside = inside && own.dli_fname != nullptr && frame.file == own.dli_fname;
    if (!inside) frames.push_back(std::move(frame));
  }
  const CachedPath path =
      DefinePath(hash, frames, flags | spool::kPathNoPython | (stack.truncated ? spool::kPathTruncated : 0u), -1);
  caches->paths.Put(hash, path);
  site.path = path.id;
  if (path.id == 0) site.no_path_reason = "more distinct call paths than are kept";
  return site;
}

uint64_t HashOf(const std::vector<FrameText>& texts) noexcept {
  uint64_t hash = 0x7b;
  for (const FrameText& text : texts) {
    hash = Mix(Hash(Hash(hash, text.file), text.function), static_cast<uint64_t>(text.line));
  }
  return hash;
}

// Where the exception passed through the module's own __init__: the frames that called it. A class's calls that of its base.
uint32_t BuilderOf(Object* const* frames, const std::vector<FrameText>& texts, int module_frame) noexcept {
  const Ref module = ModuleOfFrame(frames[module_frame]);
  size_t caller = static_cast<size_t>(module_frame);
  while (caller < texts.size() && python::FunctionNameOf(frames[caller]) == "__init__" &&
         ModuleOfFrame(frames[caller]).get() == module.get()) {
    ++caller;
  }
  if (caller == static_cast<size_t>(module_frame) || caller == texts.size()) return 0;
  const std::vector<FrameText> outer(texts.begin() + static_cast<ptrdiff_t>(caller), texts.end());
  return DefinePath(HashOf(outer), outer, 0, -1).id;
}

}  // namespace

CallSite SiteOfFrames(Object* const* frames, const int32_t* lines, int count) noexcept {
  CallSite site;
  if (count == 0) {
    site.no_path_reason = "no traceback";
    return site;
  }
  std::vector<FrameText> texts;
  for (int i = 0; i < count; ++i) {
    texts.push_back(ReadFrame(frames[i]));
    texts.back().line = lines[i];
  }
  const uint64_t hash = HashOf(texts);
  const int module_frame = FindModuleFrame(frames, count);
  site.path = DefinePath(hash, texts, 0, module_frame).id;
  if (module_frame < 0) return site;
  ModuleFacts facts = ReadModuleFacts(frames, count, module_frame);
  if (facts.selection_state == spool::SelectionState::kUnset && facts.built_path == 0) {
    facts.built_path = BuilderOf(frames, texts, module_frame);
  }
  const CachedModule module = DefineModule(Mix(hash, reinterpret_cast<uintptr_t>(frames[0])), facts);
  site.module = module.id;
  site.layer = module.layer;
  return site;
}

uint32_t PathOfRunning(Object* const* frames, int count) noexcept {
  std::vector<Ref> codes;
  uint64_t hash = 0xb117;
  for (int i = 0; i < count; ++i) {
    codes.emplace_back(Py().PyFrame_GetCode(frames[i]));
    hash = Mix(hash ^ reinterpret_cast<uintptr_t>(codes.back().get()), static_cast<uint64_t>(PlaceIn(frames[i])));
  }
  {
    const std::lock_guard<std::mutex> lock(All().mutex);
    if (const auto known = All().paths.find(hash); known != All().paths.end()) return known->second.id;
  }
  std::vector<FrameText> texts;
  for (int i = 0; i < count; ++i) texts.push_back(ReadFrame(frames[i]));
  const uint32_t path = DefinePath(hash, texts, 0, -1).id;
  if (path == 0) return 0;
  for (Ref& code : codes) code.release();  // as in NewPythonPath, so that the hash stays this path's
  return path;
}

void SetStackDepth(int frames) noexcept { g_depth = std::clamp(frames, 1, kMaxFrames); }

CallSite Where(PathCaches* caches, int compiled_regions) noexcept {
  if (python::CanEnter()) return PythonSite(caches, compiled_regions);
  return NativeSite(caches, compiled_regions > 0 ? spool::kPathCompiled : 0u);
}

void LockPathsForFork() noexcept { All().mutex.lock(); }
void UnlockPathsAfterFork() noexcept { All().mutex.unlock(); }

}  // namespace attntrace
