// Which forward call a backward node belongs to. Autograd numbers its nodes on the thread that records them; each forward call
// owns the numbers handed out while it was open.
//
// Written by the forward's thread, read by autograd threads.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "collectors/call_path.h"

namespace attntrace {

// A call that autograd does not record itself, because its node holds several and gradients are off in it.
enum class NodeAround : uint8_t { kNone, kCompiled, kFunction };

struct ForwardCall {
  int64_t first = 0;  // sequence numbers [first, end)
  int64_t end = 0;
  uint32_t slot = 0;
  int32_t space = -1;
  int64_t score_elements = 0;
  const char* op = "";
  CallSite site;
  Backend backend = Backend::kUnknown;
  PathKind path_kind = PathKind::kUnknown;
  spool::TensorDef q{}, k{};
  NodeAround around = NodeAround::kNone;
};

class ForwardTable {
 public:
  static constexpr size_t kCalls = 1 << 15;  // a ring: with more calls alive than this the oldest are forgotten, and counted

  void Add(const ForwardCall& call) noexcept;
  // The call that owns `sequence`. False: none.
  bool Find(int64_t sequence, ForwardCall* out) noexcept;
  bool Owns(int64_t sequence) noexcept;  // whether Find would find one
  // Calls inside one function's node, newest first: the n-th.
  bool FindInside(int64_t sequence, int n, ForwardCall* out) noexcept;
  void Lock() noexcept { mutex_.lock(); }
  void Unlock() noexcept { mutex_.unlock(); }

 private:
  // Under the lock.
  const ForwardCall& Place(size_t i) const noexcept { return ring_[(next_ + i) % ring_.size()]; }  // oldest first
  size_t UpTo(int64_t sequence) const noexcept;
  const ForwardCall* At(int64_t sequence) const noexcept;
  std::mutex mutex_;
  std::vector<ForwardCall> ring_;  // ascending in `first` from oldest to newest
  size_t next_ = 0;                // place of the next one; total count modulo the capacity
};

// By PyTorch's own thread number (RecordFunction::currentThreadId). Null past the bound on threads.
ForwardTable* ForwardsOf(uint64_t torch_thread) noexcept;

}  // namespace attntrace
