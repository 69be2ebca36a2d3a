// Sizes of the CPU allocator's live blocks, which a free does not say. PyTorch keeps such a table only while memory is
// profiled, one map under one mutex; this one is in shards, so that threads that allocate at once seldom meet.
//
// Any thread; no allocation through PyTorch. A forked child has the blocks of its parent.
#pragma once

#include <stdint.h>

namespace attntrace::preload {

// Bytes of a block that was there under this address and went unseen, else 0. False where there is no room: the block is not
// known.
bool KeepBlock(const void* pointer, int64_t bytes, int64_t* replaced) noexcept;
// False where the block is not known.
bool ForgetBlock(const void* pointer, int64_t* bytes) noexcept;

}  // namespace attntrace::preload
