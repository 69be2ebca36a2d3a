// The seam between the preload (in every process, libc only) and the agent (in processes that map libtorch).
//
// C types only. The preload owns the interposed symbols for the life of the process; the agent lends it a table of functions.
// The agent is never unloaded, so a table once connected stays valid.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct AttntraceHooks {
  uint32_t size;  // sizeof(AttntraceHooks) of the agent: the preload refuses another one

  // One allocation (bytes > 0) or free (bytes < 0) of tensor storage. Called on any thread, perhaps under PyTorch's
  // allocator lock: count and return; no allocation through PyTorch, no Python, no CUDA. `device_type` is c10::DeviceType
  // (0 CPU, 1 CUDA). `total_allocated` is a device allocator's own live figure, 0 of the CPU's. A null pointer: a sum over what
  // other threads reported while the agent was starting.
  void (*memory)(void* pointer, int64_t bytes, size_t total_allocated, size_t total_reserved, int8_t device_type,
                 int8_t device_index);

  // A device allocator ran out of memory: `bytes` were asked for. Same rules.
  void (*out_of_memory)(int64_t bytes, size_t total_allocated, size_t total_reserved, int8_t device_type, int8_t device_index);

  // A PEP 578 audit event that the preload lets through: sys.excepthook, compile, and open off the main thread. GIL held.
  // `args` is a PyObject* tuple.
  void (*audit)(const char* event, void* args);

  // The process exits normally, in Python after the interpreter's finalisation; called once. A forked child that exits normally
  // calls it too, in its own copy of the agent.
  void (*at_exit)();

  // A CUPTI callback that the agent asked for (AttntraceCupti::want). On the thread that called CUDA, inside that call: no call
  // into CUDA, CUPTI or Python. `data` is what CUPTI hands out for the domain.
  void (*cupti)(int domain, uint32_t callback, const void* data);

  // PyTorch is about to make an event; `scope` is at::RecordScope, `caller` the return address. Not 0: nobody wants it, and
  // `result` now holds a std::optional<at::StepCallbacks> without value, or `record` an at::RecordFunction that is not active.
  // `*thread` is the agent's own, null at a thread's first question.
  int (*skip_event)(void* result, uint8_t scope, const void* caller, void** thread);
  int (*skip_record)(void* record, uint8_t scope, const void* caller, void** thread);

  // PyTorch is about to set its thread's callbacks to `state`, an at::RecordFunctionTLS. Not 0: nothing would change.
  int (*same_record_state)(const void* state);
};

// CUPTI through the preload, which shares its one subscription between the agent and a client of the program's. Any thread;
// never from inside a CUPTI callback, and none of it waits.
struct AttntraceCuptiSite {
  int domain;  // CUpti_CallbackDomain
  uint32_t callback;
};
enum AttntraceCuptiAnswer {     // beside CUPTI's own results, which are not negative
  kAttntraceCuptiMissing = -1,  // no libcupti in the process
  kAttntraceCuptiBusy = -2,     // a change by another thread is under way: ask again
  kAttntraceCuptiForked = -3,   // a forked child leaves CUPTI alone
  kAttntraceCuptiPeer = -4,     // a client of the program's has taken it
};
typedef void (*AttntraceBufferRequested)(uint8_t** buffer, size_t* size, size_t* most_records);
typedef void (*AttntraceBufferCompleted)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
struct AttntraceCupti {
  // From now on the agent wants exactly these callbacks; none gives its own subscription up. 0 or a CUptiResult or an answer
  // above.
  int (*want)(const AttntraceCuptiSite* sites, int count);
  // Changes whenever callbacks may have been missed: another subscriber, or none. After a change the agent asks again.
  uint64_t (*generation)();
  int (*shared)();     // 1: a client of the program's holds the subscription, with us in front
  void* (*library)();  // dlopen handle of libcupti, for dlsym; null where there is none
  // Makes the agent's buffers for activity records CUPTI's, where no client of the program's has brought its own. `yield` is
  // called once, when one comes: on its thread and before its call goes on, so that all buffers can be had back. Same answers
  // as `want`.
  int (*take_activity)(AttntraceBufferRequested requested, AttntraceBufferCompleted completed, void (*yield)());
};

// What the preload tells the agent when it starts it.
struct AttntraceStart {
  uint32_t size;
  const char* spool_directory;
  const char* torch_version;  // as read beside the mapped libtorch, "2.11.0+cu130"
  const char* torch_library;  // path of the mapped libtorch_cpu.so
  int has_python;             // 1: an interpreter is in the process; the GIL is held by the caller
  int64_t cpu_live_bytes;     // reported before the agent was there
  int64_t cpu_peak_bytes;
  uint64_t cpu_allocated_bytes;
  uint64_t cpu_allocations;
  uint64_t cpu_frees;
  const AttntraceCupti* cupti;       // never null
  const uint32_t* global_callbacks;  // how often at::addGlobalCallback was called; never null
};

// Exported by the agent: starts every collector. Returns the hook table, or null when it refuses (then *reason says why in
// one line that outlives the call). Called once, on the thread that imported torch, or on the main thread before main.
typedef const AttntraceHooks* (*AttntraceAgentStart)(const AttntraceStart* start, const char** reason);
#define ATTNTRACE_AGENT_START "attntrace_agent_start"

}  // extern "C"
