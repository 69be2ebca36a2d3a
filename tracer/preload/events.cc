#include "tracer/preload/events.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>

#include <atomic>

#include "tracer/preload/attach.h"
#include "tracer/preload/libraries.h"

namespace attntrace::preload {
namespace {

uint32_t g_global_callbacks = 0;

}  // namespace

const uint32_t* GlobalCallbacksAdded() noexcept { return &g_global_callbacks; }

#ifdef __x86_64__

namespace {

#define ATTNTRACE_STEPS "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE"
#define ATTNTRACE_RECORD "_ZN2at14RecordFunctionC1ENS_11RecordScopeE"
#define ATTNTRACE_ADD "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE"
#define ATTNTRACE_SET "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE"

// A C++ function's result that is no plain value is built where the caller says, in the first argument.
using Steps = void* (*)(void* result, uint8_t scope);
using Record = void (*)(void* record, uint8_t scope);
using Set = void (*)(const void* state);

std::atomic<Steps> g_steps{nullptr};
std::atomic<Record> g_record{nullptr};
std::atomic<void*> g_add{nullptr};
std::atomic<Set> g_set{nullptr};

// What the agent keeps of a thread: reached at the cost of a load here, where the agent's own thread-locals take a call.
thread_local void* t_agent_thread = nullptr;

// libtorch_cpu's own, or that of a LibTorch under another name, which the caller is part of or needs. It may be mapped
// RTLD_LOCAL, out of RTLD_NEXT's sight; its handle is kept. Every thread that comes here first looks for itself: one that
// waited for another could hold the loader's lock.
void* Find(const char* name, const void* caller) noexcept {
  const int saved_errno = errno;
  char path[PATH_MAX];
  void* torch = FindLibrary("libtorch_cpu", path, sizeof(path)) ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  void* found = torch == nullptr ? nullptr : dlsym(torch, name);
  if (found == nullptr) found = dlsym(RTLD_NEXT, name);
  Dl_info own{};
  if (found == nullptr && dladdr(caller, &own) != 0 && own.dli_fname != nullptr) {
    torch = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    found = torch == nullptr ? nullptr : dlsym(torch, name);
  }
  if (found == nullptr) __builtin_trap();  // the caller is linked against it
  errno = saved_errno;
  return found;
}

template <typename Function>
Function Real(std::atomic<Function>* known, const char* name, const void* caller) noexcept {
  Function real = known->load(std::memory_order_acquire);
  if (real != nullptr) [[likely]]
    return real;
  real = reinterpret_cast<Function>(Find(name, caller));
  known->store(real, std::memory_order_release);
  return real;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void* AttntraceSteps(void* result, uint8_t scope) asm(ATTNTRACE_STEPS);
void* AttntraceSteps(void* result, uint8_t scope) {
  if (const AttntraceHooks* const hooks = ConnectedHooks(); hooks != nullptr && hooks->skip_event != nullptr) {
    if (hooks->skip_event(result, scope, __builtin_return_address(0), &t_agent_thread)) return result;
  }
  return Real(&g_steps, ATTNTRACE_STEPS, __builtin_return_address(0))(result, scope);
}

__attribute__((visibility("default"))) void AttntraceRecord(void* record, uint8_t scope) asm(ATTNTRACE_RECORD);
void AttntraceRecord(void* record, uint8_t scope) {
  if (const AttntraceHooks* const hooks = ConnectedHooks(); hooks != nullptr && hooks->skip_record != nullptr) {
    if (hooks->skip_record(record, scope, __builtin_return_address(0), &t_agent_thread)) return;
  }
  Real(&g_record, ATTNTRACE_RECORD, __builtin_return_address(0))(record, scope);
}

// The autograd engine sets it twice around every node, and every time PyTorch sorts its callbacks into scopes anew: with one
// registered, that takes longer than to see that nothing changes.
__attribute__((visibility("default"))) void AttntraceSet(const void* state) asm(ATTNTRACE_SET);
void AttntraceSet(const void* state) {
  if (const AttntraceHooks* const hooks = ConnectedHooks(); hooks != nullptr && hooks->same_record_state != nullptr) {
    if (hooks->same_record_state(state)) return;
  }
  Real(&g_set, ATTNTRACE_SET, __builtin_return_address(0))(state);
}

// Counted, and then left to the real one with registers and stack as they came: the callback is handed over by value.
__attribute__((used)) void* AttntraceAdd(const void* caller) {
  __atomic_add_fetch(&g_global_callbacks, 1, __ATOMIC_SEQ_CST);
  return Real(&g_add, ATTNTRACE_ADD, caller);
}
__attribute__((visibility("default"), naked)) void AttntraceAddGlobalCallback() asm(ATTNTRACE_ADD);
void AttntraceAddGlobalCallback() {
  asm("push %rdi\n\t"
      "mov 8(%rsp), %rdi\n\t"  // the return address
      "call AttntraceAdd\n\t"
      "pop %rdi\n\t"
      "jmp *%rax");
}

}  // extern "C"

#endif

}  // namespace attntrace::preload
