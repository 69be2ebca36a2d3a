#include "collectors/lineage.h"

namespace attntrace {

int Lineage::Begin(ThreadMemory* memory) noexcept {
  int oldest = 0;
  for (int i = 0; i < kCandidates; ++i) {
    if (!candidates_[i].live) {
      oldest = i;
      break;
    }
    if (candidates_[i].born < candidates_[oldest].born) oldest = i;
  }
  if (candidates_[oldest].live) Drop(oldest, memory);
  candidates_[oldest] = Candidate{};
  candidates_[oldest].live = true;
  candidates_[oldest].born = ++products_;
  return oldest;
}

Stage Lineage::Find(const void* data, int* candidate) const noexcept {
  if (data == nullptr) return Stage::kNone;
  for (const Block& block : block_) {
    if (block.data == data) {
      *candidate = block.candidate;
      return block.stage;
    }
  }
  return Stage::kNone;
}

Lineage::Watch Lineage::Descend(int candidate, Stage stage) noexcept {
  const Watch former = watch_;
  watch_ = {candidate, stage};
  return former;
}

bool Lineage::Step(int candidate, ThreadMemory* memory) noexcept {
  if (++candidates_[candidate].steps <= kMaxSteps) return true;
  Drop(candidate, memory);
  return false;
}

void Lineage::OnBarrier(ThreadMemory* memory) noexcept {
  for (int i = 0; i < kCandidates; ++i) {
    Candidate& candidate = candidates_[i];
    if (candidate.live && !candidate.softmax_seen && ++candidate.barriers > kMaxBarriers) Drop(i, memory);
  }
}

void Lineage::Promote(const void* data) noexcept {
  for (Block& block : block_) {
    if (block.data == data) block.stage = Stage::kWeights;
  }
}

void Lineage::Drop(int candidate, ThreadMemory* memory) noexcept {
  memory->Close(&candidates_[candidate].meter);
  candidates_[candidate].live = false;
  for (Block& block : block_) {
    if (block.data != nullptr && block.candidate == candidate) {
      block = {};
      --blocks_;
    }
  }
}

void Lineage::Put(const void* data, int64_t bytes, int candidate, Stage stage) noexcept {
  const Candidate& from = candidates_[candidate];
  // At least two bytes an element: smaller blocks are reductions, and bool masks carry no scores.
  // And at most eight, with some room for what is put beside the scores: larger ones are products with something else.
  if (!from.live || bytes < from.score_elements * 2 || bytes > from.score_elements * 10 + 4096) return;
  Block& at = block_[next_block_];
  next_block_ = (next_block_ + 1) % kBlocks;
  if (at.data == nullptr) ++blocks_;
  at = {data, static_cast<int8_t>(candidate), stage};
}

void Lineage::OnAllocate(const void* data, int64_t bytes, int space) noexcept {
  OnFree(data);  // the address may have been freed by another thread
  if (watch_.candidate < 0 || candidates_[watch_.candidate].space != space) return;
  Put(data, bytes, watch_.candidate, watch_.stage);
}

void Lineage::OnCopy(const void* data, int64_t bytes, int candidate, Stage stage) noexcept {
  candidates_[candidate].steps = 0;
  int known = -1;
  if (data != nullptr && Find(data, &known) == Stage::kNone) Put(data, bytes, candidate, stage);
}

void Lineage::OnFree(const void* data) noexcept {
  if (blocks_ == 0) return;
  for (Block& block : block_) {
    if (block.data == data) {
      block = {};
      --blocks_;
    }
  }
}

}  // namespace attntrace
