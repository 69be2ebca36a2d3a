// Hand-written attention: a softmax whose input descends from a batched product QK^T and whose result feeds a batched product
// PV.
//
// Descent is observed, not guessed from shapes: the block that a step allocates while one of its inputs is a score tensor is a
// score tensor too, as long as it is at least as large (scaling, masking, dropout, casts, copies) and the step is no barrier (a
// linear layer, a norm). In-place steps and views keep the address. So a router's or a classifier's softmax, whose logits come
// out of a linear layer, is never taken for attention.
//
// One thread's; fed by the dispatch collector and by memory reports (which may come under PyTorch's allocator lock).
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectors/call_path.h"
#include "collectors/cupti/kernels.h"
#include "collectors/memory.h"
#include "tracer/spool/format.h"

namespace attntrace {

enum class Stage : uint8_t { kNone, kScores, kWeights };  // before and after the softmax

// From the QK^T product on; becomes an attention call when its weights reach a PV product.
struct Candidate {
  bool live = false;
  int space = -1;
  Meter meter;
  uint64_t start_ns = 0;
  int64_t first_sequence = -1;  // autograd sequence number before QK^T
  uint64_t born = 0;            // product counter: the oldest gives way
  int steps = 0;                // taken from it, and barriers passed since it began: see Step and OnBarrier
  int barriers = 0;
  spool::TensorDef q{}, k{}, v{}, mask{};  // q and k as the batched product sees them: (batch x heads, rows, width)
  int64_t score_elements = 0;
  int64_t rows = 0, columns = 0;  // Sq, Sk
  // Known from the softmax on.
  bool softmax_seen = false;
  const char* softmax = "";
  bool mask_added = false;       // to the scores, rather than used as a condition
  int64_t batch = 0, heads = 0;  // where the softmax's input has rank 4
  CallSite site;
  KernelSet kernels;
};

class Lineage {
 public:
  static constexpr int kCandidates = 4;
  static constexpr int kBlocks = 24;
  // Between QK^T and PV there are a few steps. A product that leads on for longer is none of an attention (rotary embeddings
  // are made by one, and used in every layer).
  static constexpr int kMaxSteps = 24;
  static constexpr int kMaxBarriers = 8;

  bool active() const noexcept { return blocks_ != 0; }
  // An attention is being computed: a step of one runs, or its softmax has been seen and its PV product has not.
  bool open() const noexcept {
    for (const Candidate& candidate : candidates_) {
      if (candidate.live && candidate.softmax_seen) return true;
    }
    return watch_.candidate >= 0;
  }

  // A batched product starts: what it allocates are the scores of a new candidate. Returns its index.
  int Begin(ThreadMemory* memory) noexcept;
  Candidate& candidate(int index) noexcept { return candidates_[index]; }

  // Whether a tensor at this address descends from a candidate's scores.
  Stage Find(const void* data, int* candidate) const noexcept;

  // While a step runs, blocks it allocates descend from `candidate` at `stage`. Steps nest (a composite calls its parts), so
  // the former watch is returned and put back at the step's end.
  struct Watch {
    int candidate = -1;
    Stage stage = Stage::kNone;
  };
  Watch Descend(int candidate, Stage stage) noexcept;
  int watched() const noexcept { return watch_.candidate; }
  void Restore(Watch former) noexcept { watch_ = former; }

  // One more step from a candidate: false where it has gone on for too long, and is dropped.
  bool Step(int candidate, ThreadMemory* memory) noexcept;
  // A linear layer or the like runs: what has seen too many of them without a softmax is dropped.
  void OnBarrier(ThreadMemory* memory) noexcept;

  // The input of an in-place softmax turns from scores into weights.
  void Promote(const void* data) noexcept;
  void Drop(int candidate, ThreadMemory* memory) noexcept;

  // Memory reports of this thread (and frees from others never: an address freed elsewhere is dropped when it is used again
  // here).
  void OnAllocate(const void* data, int64_t bytes, int space) noexcept;
  // Scores are copied into a buffer that was there before (windowed attention puts chunks together so): it descends from them
  // too. The steps of another copy are counted anew.
  void OnCopy(const void* data, int64_t bytes, int candidate, Stage stage) noexcept;
  void OnFree(const void* data) noexcept;

 private:
  struct Block {
    const void* data = nullptr;
    int8_t candidate = -1;
    Stage stage = Stage::kNone;
  };
  void Put(const void* data, int64_t bytes, int candidate, Stage stage) noexcept;

  Candidate candidates_[kCandidates];
  Block block_[kBlocks];
  int blocks_ = 0;
  int next_block_ = 0;
  Watch watch_;
  uint64_t products_ = 0;
};

}  // namespace attntrace
