// Blocks of memory by address, with a value each. libc only; for the few tables that the preload must keep.
//
// Not locked: the owner's lock guards it. Allocates with calloc when it grows.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace attntrace::preload {

class BlockTable {
 public:
  // False where there is no memory for it. `fresh` says whether the address was not there.
  bool Put(const void* pointer, uint64_t value, bool* fresh) noexcept;
  // Takes it out; false where it is not there.
  bool Take(const void* pointer, uint64_t* value) noexcept;

 private:
  struct Block {
    const void* pointer;  // null: empty
    uint64_t value;
  };
  size_t Home(const void* pointer) const noexcept;
  size_t SlotOf(const void* pointer) const noexcept;
  bool Reserve() noexcept;
  void Erase(size_t hole) noexcept;

  // Open addressing, at most half full, backward-shift deletion.
  Block* blocks_ = nullptr;
  size_t capacity_ = 0;  // a power of two
  size_t used_ = 0;
};

}  // namespace attntrace::preload
