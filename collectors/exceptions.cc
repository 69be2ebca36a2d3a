#include "collectors/exceptions.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <vector>

#include "collectors/call_path.h"
#include "collectors/environment.h"
#include "collectors/fault.h"
#include "collectors/incidents.h"
#include "collectors/lowered.h"
#include "collectors/module_facts.h"
#include "collectors/python_api.h"
#include "collectors/requests.h"
#include "collectors/spool_writer.h"
#include "collectors/thread_state.h"

namespace attntrace {
namespace {

using python::Object;
using python::Py;
using python::Ref;

constexpr int kMaxChain = 8;  // exceptions of one chain
constexpr size_t kMaxMessage = 2000;
constexpr intptr_t kMaxKept = 64;     // entries of a list that are looked at
constexpr uint32_t kMaxDropped = 16;  // distinct ones: there is to be room for what nobody caught

struct Trace {  // innermost frame first
  std::vector<Ref> owned;
  std::vector<Object*> frames;
  std::vector<int32_t> lines;
  int raised = 0;  // how many of them the exception passed through
};

// Layout of an exception in every supported CPython: PyObject, its dictionary, its arguments.
Object* ArgumentsOf(Object* exception) noexcept {
  struct Head {
    intptr_t references;
    void* type;
    Object* dictionary;
    Object* arguments;
  };
  return static_cast<Head*>(exception)->arguments;
}

bool IsException(Object* object) noexcept {
  return object != nullptr && Py().base_exception != nullptr &&
         Py().PyType_IsSubtype(python::TypeOf(object), Py().base_exception) != 0;
}

// The first argument, where it is text or None: `str` of an exception would run the program's code.
std::string MessageOf(Object* exception) {
  Object* const arguments = ArgumentsOf(exception);
  if (arguments == nullptr || Py().PyTuple_Size(arguments) < 1) {
    Py().PyErr_Clear();
    return {};
  }
  Object* const first = Py().PyTuple_GetItem(arguments, 0);
  if (first == Py().none) return "None";
  std::string text = python::Text(first);
  if (text.size() > kMaxMessage) {  // the end is the cause of what Dynamo wraps, the start what anybody else says
    text = text.substr(0, kMaxMessage / 2) + "\n...\n" + text.substr(text.size() - kMaxMessage / 2);
  }
  return text;
}

Trace RaisedThrough(Object* exception) {
  Trace trace;
  Ref entry(Py().PyException_GetTraceback(exception));
  std::vector<std::pair<Object*, int32_t>> outermost_first;
  while (entry && outermost_first.size() < 4096) {
    Ref frame(Py().PyObject_GetAttrString(entry.get(), "tb_frame"));
    const Ref line(Py().PyObject_GetAttrString(entry.get(), "tb_lineno"));
    if (!frame || !line || frame.get() == Py().none) break;  // None: the garbage collector has cleared it
    outermost_first.emplace_back(frame.get(),
                                 line.get() == Py().none ? 0 : static_cast<int32_t>(Py().PyLong_AsLong(line.get())));
    trace.owned.push_back(std::move(frame));
    Ref next(Py().PyObject_GetAttrString(entry.get(), "tb_next"));
    if (!next || next.get() == Py().none) break;
    entry = std::move(next);
  }
  Py().PyErr_Clear();
  for (auto at = outermost_first.rbegin(); at != outermost_first.rend() && trace.frames.size() < kMaxFrames; ++at) {
    trace.frames.push_back(at->first);
    trace.lines.push_back(at->second);
  }
  trace.raised = static_cast<int>(trace.frames.size());
  return trace;
}

// A traceback starts where the exception was caught; what called that is behind its frame.
void AddCallers(Trace* trace) {
  Object* outer = trace->frames.empty() ? nullptr : trace->frames.back();
  while (outer != nullptr && trace->frames.size() < kMaxFrames) {
    Ref back(Py().PyFrame_GetBack(outer));
    outer = back.get();
    if (outer == nullptr) break;
    trace->frames.push_back(outer);
    trace->lines.push_back(Py().PyFrame_GetLineNumber(outer));
    trace->owned.push_back(std::move(back));
  }
}

// Exceptions that were told of and may still be alive: their death is no news. Behind the GIL.
Object* g_told[64];
uint32_t g_dropped = 0;   // distinct ones that were kept
bool g_not_kept = false;  // one more was not
unsigned g_next_told = 0;

void NoteTold(Object* exception) noexcept { g_told[g_next_told++ % std::size(g_told)] = exception; }

// Whether it passed through a module or came out of Transformers, where models are made. A missing attribute of a module is how
// `hasattr` says no.
bool MayConcernAttention(const Trace& trace) {
  if (trace.raised == 0 || python::FunctionNameOf(trace.frames[0]) == "__getattr__") return false;
  if (FindModuleFrame(trace.frames.data(), trace.raised) >= 0) return true;
  return std::any_of(trace.frames.begin(), trace.frames.begin() + trace.raised,
                     [](Object* frame) { return python::ModuleNameOf(frame).compare(0, 13, "transformers.") == 0; });
}

class Recorder {
 public:
  explicit Recorder(uint32_t thread) : thread_(thread) {}

  void Record(Object* exception, IncidentKind kind, uint32_t leads_to) {
    if (!IsException(exception) || seen_.size() >= kMaxChain) return;
    for (Object* const known : seen_) {
      if (known == exception) return;
    }
    seen_.push_back(exception);
    Trace trace = RaisedThrough(exception);
    if (kind == IncidentKind::kCaught && FindModuleFrame(trace.frames.data(), trace.raised) < 0) return;
    if (kind == IncidentKind::kDropped && !MayConcernAttention(trace)) return;
    NoteTold(exception);
    AddCallers(&trace);
    Incident incident;
    incident.kind = kind;
    incident.leads_to = leads_to;
    incident.thread = thread_;
    incident.type = python::TypeModule(python::TypeOf(exception)) + "." + python::TypeName(python::TypeOf(exception));
    incident.message = MessageOf(exception);
    ReadLimit(trace.frames.data(), static_cast<int>(trace.frames.size()), &incident.facts);
    if (Object* const flex = FlexFrameOf(trace.frames.data(), trace.raised); flex != nullptr) {
      ReadRefusedInputs(flex, &incident.facts);
    }
    incident.site = SiteOfFrames(trace.frames.data(), trace.lines.data(), static_cast<int>(trace.frames.size()));
    const uint32_t id = RecordIncident(incident);
    if (id == 0) return;
    if (first_ == 0) first_ = id;
    const Ref cause(Py().PyException_GetCause(exception)), context(Py().PyException_GetContext(exception));
    for (Object* const before : {cause.get(), context.get()}) {
      if (before != nullptr && before != Py().none) Record(before, IncidentKind::kCause, id);
    }
    // Exceptions that were caught and kept: a program that reports them later dies of something else.
    if (kind == IncidentKind::kCaught || kind == IncidentKind::kDropped) return;
    for (Object* const frame : trace.frames) {
      VisitLocals(frame, [&](Object* value) { RecordKept(value, id, 0); });
    }
  }

  uint32_t first() const { return first_; }  // of the incidents; 0: none

 private:
  // An exception, a future of concurrent.futures that ended in one, or a list of either.
  void RecordKept(Object* value, uint32_t id, int depth) {
    if (IsException(value)) return Record(value, IncidentKind::kCause, id);
    if (python::TypeName(python::TypeOf(value)) == "Future" &&
        python::TypeModule(python::TypeOf(value)) == "concurrent.futures._base") {
      return Record(python::OwnAttribute(value, "_exception"), IncidentKind::kCause, id);
    }
    if (depth > 0 || python::TypeOf(value) != Py().list_type) return;
    const intptr_t count = std::min<intptr_t>(Py().PyList_Size(value), kMaxKept);
    for (intptr_t i = 0; i < count; ++i) RecordKept(Py().PyList_GetItem(value, i), id, depth + 1);
  }

  uint32_t thread_;
  uint32_t first_ = 0;
  std::vector<Object*> seen_;
};

void RecordCaught(Object* exception) {
  ThreadState* const state = CurrentThread();
  if (state == nullptr) return;
  const Inside ours(state);
  Recorder(ThreadId(state)).Record(exception, IncidentKind::kCaught, 0);
}

void RecordException(Object* exception, IncidentKind kind) {
  ThreadState* const state = CurrentThread();
  if (state == nullptr) return;
  const Inside ours(state);
  Recorder(ThreadId(state)).Record(exception, kind, 0);
  if (g_not_kept && kind == IncidentKind::kException) {
    Spool().Note("exceptions",
                 "more exceptions were caught and dropped than are kept: what led to the last one may be missing");
  }
  RefreshEnvironment();
}

// Opening a file while an exception is handled: a logged traceback reads its sources. Only of exceptions that passed through a
// torch.nn.Module.
void OnHandled() {
  static thread_local Object* t_seen = nullptr;  // compared, never read
  Object *type = nullptr, *value = nullptr, *traceback = nullptr;
  Py().PyErr_GetExcInfo(&type, &value, &traceback);
  const Ref owned_type(type), owned(value), owned_traceback(traceback);
  if (value == nullptr || value == Py().none || value == t_seen) return;
  t_seen = value;
  RecordCaught(value);
}

// `threading` has no audit event for an exception that ends a thread. Its default hook prints the traceback, and opens the
// sources for that: the first such open, under invoke_excepthook, is taken as the event. The hook's argument is (type, value,
// traceback, thread).
void OnOpen() {
  if (syscall(SYS_gettid) == getpid()) return OnHandled();
  static thread_local Object* t_seen = nullptr;
  Ref frame(Py().PyEval_GetFrame());
  if (!frame) return;
  Py().Py_IncRef(frame.get());
  for (int i = 0; i < 48 && frame; ++i) {
    if (python::FunctionNameOf(frame.get()) == "invoke_excepthook" && python::ModuleNameOf(frame.get()) == "threading") {
      const int index = LocalIndex(frame.get(), "args");
      const Ref arguments = index < 0 ? Ref() : python::Local(frame.get(), index, "args");
      if (!arguments || Py().PyTuple_Size(arguments.get()) < 2) return Py().PyErr_Clear();
      Object* const exception = Py().PyTuple_GetItem(arguments.get(), 1);
      if (exception == t_seen) return;
      t_seen = exception;
      return RecordException(exception, IncidentKind::kThreadException);
    }
    frame = Ref(Py().PyFrame_GetBack(frame.get()));
  }
  OnHandled();
}

// Files that tell of a selection; see requests.h.
void OnOpenOf(const std::string& path) noexcept {
  const auto ends_with = [&](const char* end) {
    const size_t length = strlen(end);
    return path.size() >= length && path.compare(path.size() - length, length, end) == 0;
  };
  if (ends_with(".py")) NoteReselection();
  if (ends_with("config.json")) NoteLoading();
}

}  // namespace

bool ForgetTold(Object* exception) noexcept {
  Object** const at = std::find(std::begin(g_told), std::end(g_told), exception);
  if (at == std::end(g_told)) return false;
  *at = nullptr;
  return true;
}

uint32_t RecordDropped(void* exception) {
  static uint32_t newest = 0;  // behind the GIL
  if (g_dropped >= kMaxDropped) {
    g_not_kept = true;
    return 0;
  }
  ThreadState* const state = CurrentThread();
  if (state == nullptr) return 0;
  const Inside ours(state);
  Recorder recorder(ThreadId(state));
  recorder.Record(exception, IncidentKind::kDropped, 0);
  if (!ForgetTold(exception)) return 0;
  if (recorder.first() > newest) {
    newest = recorder.first();
    ++g_dropped;
    RefreshEnvironment();
  }
  return recorder.first();
}

void OnAudit(const char* event, void* args) noexcept {
  if (!python::Loaded() || args == nullptr || !python::InMainInterpreter()) return;
  Guarded("exceptions", false, [&] {
    const python::Section gil;  // an exception may be pending around the event
    if (strcmp(event, "sys.excepthook") == 0) {
      if (Py().PyTuple_Size(args) >= 3) RecordException(Py().PyTuple_GetItem(args, 2), IncidentKind::kException);
    } else if (strcmp(event, "compile") == 0) {
      if (Py().PyTuple_Size(args) >= 2) NoteCompiledSource(Py().PyTuple_GetItem(args, 0));
    } else if (strcmp(event, "open") == 0) {
      if (Py().PyTuple_Size(args) > 0) OnOpenOf(python::Text(Py().PyTuple_GetItem(args, 0)));
      OnOpen();
    }
    return true;
  });
}

}  // namespace attntrace
