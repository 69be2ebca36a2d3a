#include "collectors/forwards.h"

#include <atomic>

#include "collectors/spool_writer.h"

namespace attntrace {

void ForwardTable::Add(const ForwardCall& call) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ring_.size() < kCalls) {
    ring_.push_back(call);
    return;
  }
  Spool().Add(Counter::kForwardForgotten);
  ring_[next_] = call;
  next_ = (next_ + 1) % kCalls;
}

// Binary search for the newest call with first <= sequence; the ring starts at next_.
const ForwardCall* ForwardTable::At(int64_t sequence) const noexcept {
  size_t low = 0, high = ring_.size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (ring_[(next_ + middle) % ring_.size()].first <= sequence) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return nullptr;
  const ForwardCall& call = ring_[(next_ + low - 1) % ring_.size()];
  return sequence < call.end ? &call : nullptr;
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
  for (size_t i = ring_.size(); i > 0; --i) {
    const ForwardCall& call = ring_[(next_ + i - 1) % ring_.size()];
    if (call.first < sequence) return false;
    if (call.first == sequence && n-- == 0) {
      *out = call;
      return true;
    }
  }
  return false;
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
