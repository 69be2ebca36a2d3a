// A lock that is waited for only so long, because a fork may copy it while another thread holds it. Long enough for a holder that a
// busy machine has put to sleep.
#pragma once

#include <errno.h>
#include <sched.h>
#include <time.h>

#include <atomic>

namespace attntrace::preload {

class SpinLock {
 public:
  bool Lock() noexcept { return !flag_.test_and_set(std::memory_order_acquire) || Wait(); }
  void Unlock() noexcept { flag_.clear(std::memory_order_release); }

 private:
  bool Wait() noexcept {
    const int saved_errno = errno;
    bool locked = false;
    for (int tries = 0; tries < 3000 && !locked; ++tries) {
      if (tries < 1000) {
        sched_yield();
      } else {  // two seconds in all
        const timespec millisecond{0, 1000000};
        nanosleep(&millisecond, nullptr);
      }
      locked = !flag_.test_and_set(std::memory_order_acquire);
    }
    errno = saved_errno;
    return locked;
  }

  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

}  // namespace attntrace::preload
