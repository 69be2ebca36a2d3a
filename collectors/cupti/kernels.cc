#include "collectors/cupti/kernels.h"

#include <atomic>
#include <cstring>
#include <mutex>

#include "collectors/spool_writer.h"
#include "collectors/thread_caches.h"

namespace attntrace {
namespace {

// Open addressing by the name's hash. Written under a lock, read without: an entry's hash is stored last.
constexpr size_t kEntries = 4096;
struct Entry {
  std::atomic<uint64_t> hash{0};
  KernelEntry value;
};
Entry g_entries[kEntries];  // [0] is kOtherKernels
size_t g_used = 1;
std::mutex g_mutex;

uint64_t HashOf(const char* name, size_t length) noexcept {
  uint64_t hash = length;
  for (; length >= 8; length -= 8, name += 8) {
    uint64_t word;
    memcpy(&word, name, 8);
    hash = Mix(hash, word);
  }
  uint64_t word = 0;
  memcpy(&word, name, length);
  hash = Mix(hash, word);
  return hash == 0 ? 1 : hash;
}

// The entry of the hash, or the first empty one; kEntries where there is neither.
size_t Find(uint64_t hash) noexcept {
  for (size_t i = 0; i < kEntries - 1; ++i) {
    const size_t at = 1 + (hash + i) % (kEntries - 1);
    const uint64_t taken = g_entries[at].hash.load(std::memory_order_acquire);
    if (taken == hash || taken == 0) return at;
  }
  return kEntries;
}

}  // namespace

KernelId InternKernel(const char* name) noexcept {
  const size_t length = strlen(name);
  const uint64_t hash = HashOf(name, length);
  size_t at = Find(hash);
  if (at < kEntries && g_entries[at].hash.load(std::memory_order_acquire) == hash) return static_cast<KernelId>(at);
  const std::lock_guard<std::mutex> lock(g_mutex);
  at = Find(hash);
  if (at < kEntries && g_entries[at].hash.load(std::memory_order_relaxed) == hash) return static_cast<KernelId>(at);
  char* const copy = g_used < kEntries / 2 && at < kEntries ? strdup(name) : nullptr;
  if (copy == nullptr) {
    Spool().Add(Counter::kKernelNamesDropped);
    return kOtherKernels;
  }
  ++g_used;
  Entry& entry = g_entries[at];
  entry.value = {Spool().Intern({copy, length}), copy, FactsOfKernel({copy, length})};
  entry.hash.store(hash, std::memory_order_release);
  return static_cast<KernelId>(at);
}

const KernelEntry& KernelOf(KernelId id) noexcept { return g_entries[id].value; }

}  // namespace attntrace
