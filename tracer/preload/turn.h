// Changes of one kind take turns. Whoever cannot have one in time goes on without: a call of a peer's might come from inside a
// callback of CUPTI's that the other change waits for.
#pragma once

#include <time.h>

#include <atomic>

namespace attntrace::preload {

class Turn {
 public:
  Turn(std::atomic_flag* flag, int milliseconds) noexcept : flag_(flag) {
    for (int waited = 0; flag_->test_and_set(std::memory_order_acquire); ++waited) {
      if (waited >= milliseconds) return;
      timespec pause{0, 1000000};
      nanosleep(&pause, nullptr);
    }
    taken_ = true;
  }
  ~Turn() {
    if (taken_) flag_->clear(std::memory_order_release);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool taken() const noexcept { return taken_; }

 private:
  std::atomic_flag* flag_;
  bool taken_ = false;
};

inline constexpr int kPeerWait = 500;  // milliseconds

}  // namespace attntrace::preload
