#include "collectors/forwards.h"

#include <atomic>

#include "collectors/spool_writer.h"

namespace attntrace {

void ForwardTable::Add(const ForwardCall& call) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  // A function's forward may record a graph of its own before a call that is the function's: that one comes too late.
  if (!ring_.empty() && call.first < Place(ring_.size() - 1).first) return Spool().Add(Counter::kForwardForgotten);
  if (ring_.size() < kCalls) {
    ring_.push_back(call);
    return;
  }
  Spool().Add(Counter::kForwardForgotten);
  ring_[next_] = call;
  next_ = (next_ + 1) % kCalls;
}

// Binary search for how many calls have first <= sequence; the ring starts at next_.
size_t ForwardTable::UpTo(int64_t sequence) const noexcept {
  size_t low = 0, high = ring_.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (Place(middle).first <= sequence) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

const ForwardCall* ForwardTable::At(int64_t sequence) const noexcept {
  const size_t count = UpTo(sequence);
  return count > 0 && sequence < Place(count - 1).end ? &Place(count - 1) : nullptr;
}

bool ForwardTable::Find(int64_t sequence, ForwardCall* out) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const ForwardCall* const call = At(sequence);
  if (call != nullptr) *out = *call;
  return call != nullptr;
}

bool ForwardTable::Owns(int64_t sequence) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return At(sequence) != nullptr;
}

bool ForwardTable::FindInside(int64_t sequence, int n, ForwardCall* out) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  const size_t count = UpTo(sequence);
  const auto wanted = static_cast<size_t>(n);
  if (wanted >= count || Place(count - 1 - wanted).first != sequence) return false;
  *out = Place(count - 1 - wanted);
  return true;
}

ForwardTable* ForwardsOf(uint64_t torch_thread) noexcept {
  constexpr size_t kThreads = 4096;
  static std::atomic<ForwardTable*> tables[kThreads];
  if (torch_thread >= kThreads) return nullptr;
  ForwardTable* table = tables[torch_thread].load(std::memory_order_acquire);
  if (table != nullptr) return table;
  auto* const fresh = new ForwardTable;
  if (tables[torch_thread].compare_exchange_strong(table, fresh, std::memory_order_acq_rel)) return fresh;
  delete fresh;
  return table;
}

}  // namespace attntrace
