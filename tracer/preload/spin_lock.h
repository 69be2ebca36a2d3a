// A lock that is waited for only so long, because a fork may copy it while another thread holds it.
#pragma once

#include <sched.h>

#include <atomic>

namespace attntrace::preload {

class SpinLock {
 public:
  bool Lock() noexcept {
    for (int tries = 0; tries < 1000; ++tries) {
      if (!flag_.test_and_set(std::memory_order_acquire)) return true;
      sched_yield();
    }
    return false;
  }
  void Unlock() noexcept { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

}  // namespace attntrace::preload
