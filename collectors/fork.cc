#include "collectors/fork.h"

#include <pthread.h>

#include <atomic>

#include "collectors/call_path.h"
#include "collectors/cupti/window.h"
#include "collectors/incidents.h"
#include "collectors/inline_reference.h"
#include "collectors/spool_writer.h"
#include "collectors/variants.h"

namespace attntrace {
namespace {

std::atomic<bool> g_detached{false};

void Prepare() noexcept {  // the order in which they nest: variants, paths or incidents, then the spool
  LockVariantsForFork();
  LockPathsForFork();
  LockIncidentsForFork();
  Spool().Lock();
}

void Parent() noexcept {
  Spool().Unlock();
  UnlockIncidentsAfterFork();
  UnlockPathsAfterFork();
  UnlockVariantsAfterFork();
}

void Child() noexcept {
  // Most forked children (data loaders) never call attention: no file for those, only private memory in place of the parent's.
  Spool().DetachAfterFork();
  StopWatchAfterFork();
  StopInlineReference();
  g_detached.store(true, std::memory_order_relaxed);
  Parent();
}

}  // namespace

void WatchForks() noexcept { pthread_atfork(Prepare, Parent, Child); }

void AttachAfterFork() noexcept {
  if (!g_detached.load(std::memory_order_relaxed)) return;
  if (!g_detached.exchange(false, std::memory_order_relaxed)) return;
  Spool().CreateAfterFork();
}

}  // namespace attntrace
