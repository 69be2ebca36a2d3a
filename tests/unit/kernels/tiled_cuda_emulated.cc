// The CUDA kernel's own source, run on the CPU by tests/fakes/cuda, behind the names of the CPU kernel: tiled_cpu_test.cc holds
// both against the same oracle.
#include <ucontext.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "kernels/tiled/cuda.cu"  // NOLINT: it is C++ here

namespace attntrace::tiled::cuda {
alignas(16) unsigned char shared[fake_cuda::kMostShared];
}

namespace attntrace::fake_cuda {
namespace {

constexpr size_t kStack = 256 << 10;

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack{new char[kStack]};
  bool done = false;
};

ucontext_t g_scheduler;
std::vector<Fiber> g_fibers;
unsigned g_current = 0;
const std::function<void()>* g_body = nullptr;

void Enter() {
  (*g_body)();
  g_fibers[g_current].done = true;
  swapcontext(&g_fibers[g_current].context, &g_scheduler);
}

}  // namespace

unsigned Thread() { return g_current; }
void Yield() { swapcontext(&g_fibers[g_current].context, &g_scheduler); }

void RunBlock(unsigned threads, const std::function<void()>& body) {
  g_body = &body;
  if (g_fibers.size() < threads) g_fibers.resize(threads);
  for (unsigned i = 0; i < threads; ++i) {
    Fiber& fiber = g_fibers[i];
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    fiber.done = false;
    makecontext(&fiber.context, Enter, 0);
  }
  for (bool running = true; running;) {
    running = false;
    for (g_current = 0; g_current < threads; ++g_current) {
      if (g_fibers[g_current].done) continue;
      swapcontext(&g_scheduler, &g_fibers[g_current].context);
      running = true;
    }
  }
}

}  // namespace attntrace::fake_cuda

namespace attntrace::tiled {

size_t CpuWorkspace(const Call& call, bool backward) { return attntrace_tiled_cuda_workspace(&call, backward); }
void CpuForward(const Call& call) {
  if (attntrace_tiled_cuda_forward(&call, nullptr) != nullptr) std::abort();
}
void CpuBackward(const Call& call) {
  if (attntrace_tiled_cuda_backward(&call, nullptr) != nullptr) std::abort();
}

}  // namespace attntrace::tiled
