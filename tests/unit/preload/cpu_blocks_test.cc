#include "tracer/preload/cpu_blocks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/unit/catch.h"

namespace attntrace::preload {
namespace {

const void* Address(uintptr_t n) { return reinterpret_cast<const void*>((n + 1) * 64); }

TEST_CASE("CPU blocks: what is known of an address is what was said last") {
  std::unordered_map<const void*, int64_t> oracle;
  std::mt19937 random(1);
  // More addresses than the tables start with, so that they grow; few enough that blocks come again and go again.
  std::uniform_int_distribution<uintptr_t> address(0, 49999);
  size_t forgotten = 0, replaced_often = 0;
  for (int step = 0; step < 400000; ++step) {
    const void* const pointer = Address(address(random));
    const auto found = oracle.find(pointer);
    int64_t bytes = 1 + static_cast<int64_t>(random() % 1000);
    if (random() % 2 == 0) {
      int64_t seen = 0;
      REQUIRE(ForgetBlock(pointer, &seen) == (found != oracle.end()));
      if (found == oracle.end()) continue;
      REQUIRE(seen == found->second);
      oracle.erase(found);
      ++forgotten;
    } else {
      int64_t replaced = -1;
      REQUIRE(KeepBlock(pointer, bytes, &replaced));
      REQUIRE(replaced == (found == oracle.end() ? 0 : found->second));
      replaced_often += found != oracle.end();
      oracle[pointer] = bytes;
    }
  }
  REQUIRE(forgotten > 50000);
  REQUIRE(replaced_often > 10000);
  for (const auto& [pointer, bytes] : oracle) {
    int64_t seen = 0;
    REQUIRE(ForgetBlock(pointer, &seen));
  }
}

TEST_CASE("CPU blocks: threads at once, and children forked among them, which go on and do not hang") {
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uintptr_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uintptr_t n = 0; !stop; n = (n + 1) % 1000) {
        const void* const pointer = Address(1000000 + t * 1000 + n);
        int64_t replaced = 0, bytes = 0;
        if (!KeepBlock(pointer, static_cast<int64_t>(n + 1), &replaced)) ++wrong;
        if (!ForgetBlock(pointer, &bytes) || bytes != static_cast<int64_t>(n + 1)) ++wrong;
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (uintptr_t n = 0; n < 2000; ++n) {
        int64_t replaced = 0, bytes = 0;
        if (!KeepBlock(Address(2000000 + n), 7, &replaced)) _exit(1);
        if (!ForgetBlock(Address(2000000 + n), &bytes) || bytes != 7) _exit(2);
      }
      _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(status == 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  REQUIRE(wrong == 0);
}

}  // namespace
}  // namespace attntrace::preload
