#include "tracer/preload/block_table.h"

#include <stdlib.h>

namespace attntrace::preload {

size_t BlockTable::Home(const void* pointer) const noexcept {
  auto bits = reinterpret_cast<uintptr_t>(pointer);
  return static_cast<size_t>((bits >> 4) * 0x9E3779B97F4A7C15u >> 20) & (capacity_ - 1);
}

// The block's slot, or the empty one where it belongs.
size_t BlockTable::SlotOf(const void* pointer) const noexcept {
  size_t slot = Home(pointer);
  while (blocks_[slot].pointer != nullptr && blocks_[slot].pointer != pointer) slot = (slot + 1) & (capacity_ - 1);
  return slot;
}

bool BlockTable::Reserve() noexcept {
  if ((used_ + 1) * 2 <= capacity_) return true;
  size_t old_capacity = capacity_;
  Block* old = blocks_;
  size_t capacity = old_capacity == 0 ? 1024 : old_capacity * 2;
  auto* blocks = static_cast<Block*>(calloc(capacity, sizeof(Block)));
  if (blocks == nullptr) return false;
  blocks_ = blocks;
  capacity_ = capacity;
  for (size_t i = 0; i < old_capacity; ++i) {
    if (old[i].pointer != nullptr) blocks[SlotOf(old[i].pointer)] = old[i];
  }
  free(old);
  return true;
}

void BlockTable::Erase(size_t hole) noexcept {
  size_t mask = capacity_ - 1;
  for (size_t next = (hole + 1) & mask; blocks_[next].pointer != nullptr; next = (next + 1) & mask) {
    // A block may move back into the hole unless its home lies between the two.
    if (((next - Home(blocks_[next].pointer)) & mask) < ((next - hole) & mask)) continue;
    blocks_[hole] = blocks_[next];
    hole = next;
  }
  blocks_[hole].pointer = nullptr;
  --used_;
}

bool BlockTable::Put(const void* pointer, uint64_t value, bool* fresh) noexcept {
  if (!Reserve()) return false;
  Block& block = blocks_[SlotOf(pointer)];
  *fresh = block.pointer == nullptr;
  if (*fresh) ++used_;
  block = {pointer, value};
  return true;
}

bool BlockTable::Take(const void* pointer, uint64_t* value) noexcept {
  if (capacity_ == 0) return false;
  size_t slot = SlotOf(pointer);
  if (blocks_[slot].pointer == nullptr) return false;
  *value = blocks_[slot].value;
  Erase(slot);
  return true;
}

}  // namespace attntrace::preload
