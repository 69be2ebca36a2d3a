#include "collectors/thread_state.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "collectors/python_api.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

std::mutex g_mutex;
std::vector<ThreadState*>& List() noexcept {
  static auto* const list = new std::vector<ThreadState*>;
  return *list;
}

// The pointer is trivially destructible, so that reports which come while the thread's destructors run find it (or find it
// dead).
thread_local ThreadState* t_state = nullptr;
thread_local bool t_dead = false;

struct Reaper {
  ~Reaper() {
    t_dead = true;
    ThreadState* const state = t_state;
    t_state = nullptr;
    if (state == nullptr) return;
    if (state->slot != nullptr) *state->slot = nullptr;
    const std::lock_guard<std::mutex> lock(g_mutex);
    std::vector<ThreadState*>& list = List();
    list.erase(std::remove(list.begin(), list.end(), state), list.end());
    delete state;
  }
};

}  // namespace

ThreadState* CurrentThread() noexcept {
  if (t_state != nullptr) return t_state;
  if (t_dead) return nullptr;
  auto* const state = new (std::nothrow) ThreadState;
  if (state == nullptr) return nullptr;
  t_state = state;
  thread_local Reaper reaper;
  (void)reaper;
  const std::lock_guard<std::mutex> lock(g_mutex);
  List().push_back(state);
  return state;
}

uint32_t ThreadId(ThreadState* state) noexcept {
  static std::atomic<uint32_t> next{1};
  if (state->id != 0) return state->id;
  state->id = next.fetch_add(1, std::memory_order_relaxed);
  char name[32] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  const std::string given = python::ThreadName();
  Spool().Append(
      spool::RecordKind::kThread, state->id,
      spool::ThreadDef{static_cast<uint64_t>(syscall(SYS_gettid)), Spool().Intern(given.empty() ? name : given.c_str())});
  return state->id;
}

void VisitThreads(void (*visit)(ThreadState*)) noexcept {
  const std::lock_guard<std::mutex> lock(g_mutex);
  for (ThreadState* const state : List()) visit(state);
}

}  // namespace attntrace
