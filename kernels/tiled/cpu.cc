// Chooses the instructions that this CPU has, and runs tasks on threads.
#include <atomic>
#include <thread>
#include <vector>

#include "kernels/tiled/call.h"
#include "kernels/tiled/cpu_level.h"

namespace attntrace::tiled {
namespace {

const Level& Best() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                             __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx512) return kAvx512Level;
  if (avx2) return kAvx2Level;
#endif
  return kBaseLevel;
}

void RunParallel(int64_t count, int threads, Task task, const void* context) {
  std::atomic<int64_t> next{0};
  const auto work = [&](int thread) {
    for (int64_t index; (index = next.fetch_add(1, std::memory_order_relaxed)) < count;) task(context, index, thread);
  };
  const int extra = static_cast<int>(count < threads ? count : threads) - 1;
  std::vector<std::thread> others;
  for (int thread = 1; thread <= extra; ++thread) others.emplace_back(work, thread);
  work(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

size_t CpuWorkspace(const Call& call, bool backward) { return Best().workspace(call, backward); }
void CpuForward(const Call& call) { Best().forward(call, RunParallel); }
void CpuBackward(const Call& call) { Best().backward(call, RunParallel); }

}  // namespace attntrace::tiled
