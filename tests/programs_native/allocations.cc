// A program that links LibTorch and allocates tensor storage in one of several ways; prints "done" and exits with the number
// that it is given.
//   return N      leaves main            exit N      calls exit
//   threads N     eight threads          fork N      forks while threads allocate, each child allocates too
#include <c10/core/CPUAllocator.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

namespace {

// Freed by the last destructor of the program, after PyTorch's allocator has destroyed its table of blocks: that table is made by
// the first allocation, and this destructor is registered before.
c10::DataPtr g_late;
// Allocated before main.
c10::DataPtr g_early = c10::GetCPUAllocator()->allocate(4000);

void AllocateInThreads(int threads) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([] {
      for (int n = 0; n < 1000; ++n) c10::GetCPUAllocator()->allocate(64);
    });
  }
  for (auto& thread : all) thread.join();
}

void ForkWhileThreadsAllocate() {
  std::atomic<bool> stop{false};
  std::vector<std::thread> all;
  for (int i = 0; i < 3; ++i) {
    all.emplace_back([&stop] {
      while (!stop) c10::GetCPUAllocator()->allocate(64);
    });
  }
  for (int n = 0; n < 300; ++n) {
    pid_t child = fork();
    if (child == 0) {
      c10::GetCPUAllocator()->allocate(64);
      _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) {
      printf("child %d ended with %d\n", n, status);
      _exit(1);
    }
  }
  stop = true;
  for (auto& thread : all) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  g_late = c10::GetCPUAllocator()->allocate(1000);
  c10::GetCPUAllocator()->allocate(1 << 20);
  if (strcmp(argv[1], "threads") == 0) AllocateInThreads(8);
  if (strcmp(argv[1], "fork") == 0) ForkWhileThreadsAllocate();
  printf("done\n");
  if (strcmp(argv[1], "exit") == 0) exit(atoi(argv[2]));
  return atoi(argv[2]);
}
