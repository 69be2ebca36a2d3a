// Small direct-mapped caches, one set a thread: what a call of a known variant needs, without a lock. A 64-bit hash stands for its
// key; a miss only costs the slow path.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attntrace {

inline uint64_t Mix(uint64_t hash, uint64_t value) noexcept {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 32);
}

template <typename Value, size_t kEntries>
class DirectMapped {
 public:
  const Value* Find(uint64_t key) const noexcept {
    const Entry& entry = entries_[key % kEntries];
    return entry.key == key && key != 0 ? &entry.value : nullptr;
  }
  void Put(uint64_t key, const Value& value) noexcept { entries_[key % kEntries] = {key, value}; }

 private:
  struct Entry {
    uint64_t key = 0;
    Value value{};
  };
  Entry entries_[kEntries];
};

struct CachedPath {
  uint32_t id = 0;
  int16_t module_frame = -1;  // index of the frame whose `self` is the attention module; -1 none
  bool flex = false;          // see CallSite::flex
};

struct CachedModule {
  uint32_t id = 0;
  int32_t layer = -1;
};

}  // namespace attntrace
