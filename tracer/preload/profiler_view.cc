#include "tracer/preload/profiler_view.h"

#include <sched.h>
#include <stdlib.h>

#include <atomic>

namespace attntrace::preload {
namespace {

struct Block {
  void* pointer;  // null: empty
  size_t bytes;
};

// Open addressing, at most half full, backward-shift deletion. Guarded by g_lock.
struct Table {
  Block* blocks = nullptr;
  size_t capacity = 0;  // a power of two
  size_t used = 0;
  size_t total = 0;  // bytes, counted as PyTorch does: a block that comes again replaces its entry, not its bytes
};
Table g_table;
std::atomic_flag g_lock = ATOMIC_FLAG_INIT;

// Bounded, because a fork may copy the lock while another thread holds it.
bool Lock() noexcept {
  for (int tries = 0; tries < 1000; ++tries) {
    if (!g_lock.test_and_set(std::memory_order_acquire)) return true;
    sched_yield();
  }
  return false;
}

size_t Home(const void* pointer) noexcept {
  auto bits = reinterpret_cast<uintptr_t>(pointer);
  return static_cast<size_t>((bits >> 4) * 0x9E3779B97F4A7C15u >> 20) & (g_table.capacity - 1);
}

// The block's slot, or the empty one where it belongs.
size_t SlotOf(const void* pointer) noexcept {
  size_t slot = Home(pointer);
  while (g_table.blocks[slot].pointer != nullptr && g_table.blocks[slot].pointer != pointer)
    slot = (slot + 1) & (g_table.capacity - 1);
  return slot;
}

bool Reserve() noexcept {
  if ((g_table.used + 1) * 2 <= g_table.capacity) return true;
  size_t old_capacity = g_table.capacity;
  Block* old = g_table.blocks;
  size_t capacity = old_capacity == 0 ? 1024 : old_capacity * 2;
  auto* blocks = static_cast<Block*>(calloc(capacity, sizeof(Block)));
  if (blocks == nullptr) return false;
  g_table.blocks = blocks;
  g_table.capacity = capacity;
  for (size_t i = 0; i < old_capacity; ++i) {
    if (old[i].pointer != nullptr) blocks[SlotOf(old[i].pointer)] = old[i];
  }
  free(old);
  return true;
}

void Erase(size_t hole) noexcept {
  size_t mask = g_table.capacity - 1;
  for (size_t next = (hole + 1) & mask; g_table.blocks[next].pointer != nullptr; next = (next + 1) & mask) {
    // A block may move back into the hole unless its home lies between the two.
    if (((next - Home(g_table.blocks[next].pointer)) & mask) < ((next - hole) & mask)) continue;
    g_table.blocks[hole] = g_table.blocks[next];
    hole = next;
  }
  g_table.blocks[hole].pointer = nullptr;
  --g_table.used;
}

ProfilerReport Added(void* pointer, int64_t bytes, size_t total_allocated) noexcept {
  if (!Reserve()) return {true, bytes, total_allocated};
  Block& block = g_table.blocks[SlotOf(pointer)];
  if (block.pointer == nullptr) ++g_table.used;
  block = {pointer, static_cast<size_t>(bytes)};
  g_table.total += static_cast<size_t>(bytes);
  return {true, bytes, g_table.total};
}

ProfilerReport Removed(void* pointer) noexcept {
  if (g_table.capacity == 0) return {};
  size_t slot = SlotOf(pointer);
  if (g_table.blocks[slot].pointer == nullptr) return {};
  size_t bytes = g_table.blocks[slot].bytes;
  g_table.total -= bytes;
  Erase(slot);
  return {true, -static_cast<int64_t>(bytes), g_table.total};
}

}  // namespace

ProfilerReport AsProfilerSees(void* pointer, int64_t bytes, size_t total_allocated) noexcept {
  if (pointer == nullptr || !Lock()) return {true, bytes, total_allocated};
  ProfilerReport report = bytes < 0 ? Removed(pointer) : Added(pointer, bytes, total_allocated);
  g_lock.clear(std::memory_order_release);
  return report;
}

}  // namespace attntrace::preload
