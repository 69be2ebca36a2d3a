#include "tracer/preload/cpu_blocks.h"

#include <errno.h>
#include <pthread.h>

#include <atomic>

#include "tracer/preload/block_table.h"
#include "tracer/preload/spin_lock.h"

namespace attntrace::preload {
namespace {

constexpr size_t kShards = 16;

struct alignas(64) Shard {
  SpinLock lock;
  BlockTable blocks;
};
Shard g_shards[kShards];
std::atomic<bool> g_prepared{false};

// No shard is in the middle of a change while the process forks: the child goes on with whole ones.
thread_local uint32_t t_held = 0;  // shards that this thread locked to fork, a bit each

void BeforeFork() noexcept {
  for (size_t i = 0; i < kShards; ++i) {
    if (g_shards[i].lock.Lock()) t_held |= 1u << i;
  }
}
void AfterFork() noexcept {
  for (size_t i = 0; i < kShards; ++i) {
    if ((t_held >> i & 1) != 0) g_shards[i].lock.Unlock();
  }
  t_held = 0;
}

Shard* Lock(const void* pointer) noexcept {
  if (!g_prepared.load(std::memory_order_relaxed) && !g_prepared.exchange(true)) {
    const int saved_errno = errno;
    pthread_atfork(BeforeFork, AfterFork, AfterFork);
    errno = saved_errno;
  }
  // Blocks are aligned to 64 bytes, large ones to pages.
  const auto bits = reinterpret_cast<uintptr_t>(pointer);
  Shard& shard = g_shards[(bits >> 6 ^ bits >> 12 ^ bits >> 20) % kShards];
  return shard.lock.Lock() ? &shard : nullptr;
}

}  // namespace

bool KeepBlock(const void* pointer, int64_t bytes, int64_t* replaced) noexcept {
  Shard* const shard = Lock(pointer);
  *replaced = 0;
  if (shard == nullptr) return false;
  uint64_t old = 0;
  bool fresh = false;
  if (shard->blocks.Take(pointer, &old)) *replaced = static_cast<int64_t>(old);
  const bool kept = shard->blocks.Put(pointer, static_cast<uint64_t>(bytes), &fresh);
  shard->lock.Unlock();
  return kept;
}

bool ForgetBlock(const void* pointer, int64_t* bytes) noexcept {
  Shard* const shard = Lock(pointer);
  if (shard == nullptr) return false;
  uint64_t size = 0;
  const bool known = shard->blocks.Take(pointer, &size);
  shard->lock.Unlock();
  *bytes = static_cast<int64_t>(size);
  return known;
}

}  // namespace attntrace::preload
