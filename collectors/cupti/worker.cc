#include "collectors/cupti/worker.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>

namespace attntrace {
namespace {

constexpr int kTickMs = 1000;

struct Worker {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed;
  bool started = false, usable = false;
  void (*job)(void*) = nullptr;  // the one to do, until it is taken
  void* argument = nullptr;
  bool busy = false;
  unsigned long asked = 0, done = 0;
};
Worker g_worker;
std::atomic<void (*)()> g_tick{nullptr};
std::atomic<bool> g_forked{false};

timespec After(int milliseconds) noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_sec += milliseconds / 1000;
  time.tv_nsec += milliseconds % 1000 * 1000000L;
  if (time.tv_nsec >= 1000000000L) {
    time.tv_nsec -= 1000000000L;
    ++time.tv_sec;
  }
  return time;
}

void* Work(void*) noexcept {
  pthread_setname_np(pthread_self(), "attntrace-cupti");
  pthread_mutex_lock(&g_worker.mutex);
  while (true) {
    const timespec until = After(kTickMs);
    int waited = 0;
    while (g_worker.job == nullptr && waited == 0) waited = pthread_cond_timedwait(&g_worker.changed, &g_worker.mutex, &until);
    auto* const job = g_worker.job;
    void* const argument = g_worker.argument;
    g_worker.job = nullptr;
    pthread_mutex_unlock(&g_worker.mutex);
    if (job != nullptr) {
      job(argument);
    } else if (auto* const tick = g_tick.load(std::memory_order_acquire); tick != nullptr) {
      tick();
    }
    pthread_mutex_lock(&g_worker.mutex);
    if (job == nullptr) continue;
    g_worker.busy = false;
    ++g_worker.done;
    pthread_cond_broadcast(&g_worker.changed);
  }
}

// Its signals are the program's threads' to take.
bool StartLocked() noexcept {
  if (g_worker.started) return g_worker.usable;
  g_worker.started = true;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&g_worker.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  sigset_t all, former;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &former) != 0) return false;
  pthread_t thread;
  g_worker.usable = pthread_create(&thread, nullptr, Work, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &former, nullptr);
  if (g_worker.usable) pthread_detach(thread);
  return g_worker.usable;
}

}  // namespace

bool RunOnWorker(void (*job)(void*), void* argument, int limit_ms) noexcept {
  if (g_forked.load(std::memory_order_relaxed)) return false;
  const timespec until = After(limit_ms);
  pthread_mutex_lock(&g_worker.mutex);
  bool finished = StartLocked();
  int waited = 0;
  while (finished && g_worker.busy && waited == 0) waited = pthread_cond_timedwait(&g_worker.changed, &g_worker.mutex, &until);
  finished = finished && !g_worker.busy;
  if (finished) {
    g_worker.busy = true;
    g_worker.job = job;
    g_worker.argument = argument;
    const unsigned long mine = ++g_worker.asked;
    pthread_cond_broadcast(&g_worker.changed);
    waited = 0;
    while (g_worker.done < mine && waited == 0) waited = pthread_cond_timedwait(&g_worker.changed, &g_worker.mutex, &until);
    finished = g_worker.done >= mine;
  }
  pthread_mutex_unlock(&g_worker.mutex);
  return finished;
}

void SetWorkerTick(void (*tick)()) noexcept { g_tick.store(tick, std::memory_order_release); }

void ForgetWorkerAfterFork() noexcept { g_forked.store(true, std::memory_order_relaxed); }

}  // namespace attntrace
