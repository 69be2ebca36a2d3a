// Everything the agent knows about one thread. Used by that thread only, but for the list that the end of the process walks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collectors/call_path.h"
#include "collectors/cupti/kernels.h"
#include "collectors/flex_facts.h"
#include "collectors/forwards.h"
#include "collectors/inline_reference.h"
#include "collectors/lineage.h"
#include "collectors/memory.h"
#include "collectors/variants.h"

namespace attntrace {

// An attention call between its operator's start and end.
struct OpenCall {
  bool open = false;
  const void* event = nullptr;  // the RecordFunction that opened it
  CallRecord record;
  Meter meter;
  uint64_t start_ns = 0;
  int64_t first_sequence = -1;
  std::vector<GateText> gates;
  bool gates_taken = false;
  bool rows_first = false;
  MaskContent content_now = MaskContent::kUnread;
  KernelSet kernels;
};

// The backward of one forward call: the autograd nodes of its range that run one after another.
struct OpenBackward {
  bool open = false;
  ForwardCall forward;
  uint64_t forward_thread = 0;
  Meter meter;
  uint64_t start_ns = 0;
  Backend backend = Backend::kUnknown;
  bool softmax = false;
  char node[64] = "";
  KernelSet kernels;
  // As of the end of its newest node: what follows is not its own.
  int64_t peak_bytes = 0, kept_bytes = 0;
  uint64_t gross = 0, end_ns = 0;
};

struct BackwardNode {  // open BACKWARD scopes of this thread
  int64_t sequence = -1;
  uint64_t forward_thread = 0;
  int inside = 0;  // attention backwards seen in it that match calls inside one compiled function
  bool attention = false;
  bool refuses = false;  // throws in place of a derivative
};

// The backward node of an autograd function whose forward called attention, see function_backward.h.
struct FunctionBackward {
  int depth = 0;  // node_depth in it
  int64_t sequence = -1;
  uint64_t forward_thread = 0;
  ForwardCall forward;     // the newest inside
  bool alone = false;      // the only one
  bool gradients = false;  // as the engine left them
  bool ran = false;        // attention was written out in it
  bool dense = false;      // with scores of whole heads
  int inside = 0;          // attentions written out in it so far, where it is not the only one
  Meter meter;             // alone
  KernelSet kernels;       // alone: what its thread launches from the first softmax on, and what led there
  bool collects = false;
  uint64_t start_ns = 0;
  char node[64] = "";
};

// The backward node of a compiled function that holds dense attention, see compiled_backward.h.
struct CompiledDense {
  static constexpr int kSizes = 4;  // distinct score matrices told apart
  int depth = 0;                    // node_depth in it; 0: none is open
  std::vector<ForwardCall> forwards;
  Meter meters[kSizes];
  int sizes = 0;
  uint64_t start_ns = 0;
};

// A compiled region with a flex template in it, see lowered.h.
struct LoweredRegion {
  int depth = 0;  // compiled_depth in it; 0: none is open
  int calls = 0;
  bool only = false;
  CallSite site;
  Meter meter;
  uint64_t start_ns = 0;
  int64_t first_sequence = -1;
};

// create_block_mask on the full grid, from the start of the step that blocks it.
struct BlockMask {
  bool open = false;
  CallSite site;
  Meter meter;
  uint64_t bytes = 0;
  DeviceKind device = DeviceKind::kOther;
};

// Which place in PyTorch makes the event that was let through last: see event_filter.h.
struct EventSource {
  enum Kind : uint8_t { kNone, kStep, kRecord };
  const void* caller = nullptr;  // return address
  Kind kind = kNone;
};

struct CallCaches {  // only for threads that call attention
  PathCaches paths;
  VariantCaches variants;
  DirectMapped<uint32_t, 512> looks;   // how often a signature's inputs were seen
  DirectMapped<uint8_t, 512> kernels;  // whole instances whose kernels were watched, by KernelSet::key
};

struct ThreadState {
  static constexpr int kMaxNodes = 16;
  static constexpr int kMaxFunctions = 4;

  uint32_t id = 0;  // kThread record
  uint64_t torch_thread = 0;
  bool inside = false;  // in code of ours: events of our own operators are not the program's
  ThreadMemory memory;
  Lineage lineage;
  OpenCall call;
  OpenBackward backward;
  BackwardNode nodes[kMaxNodes];  // those whose event was made
  int node_depth = 0;
  EventSource source;
  int sums_wanted = 0;                        // events of so many more aten::sum are made
  void** slot = nullptr;                      // where the preload keeps this state's address
  FunctionBackward functions[kMaxFunctions];  // a checkpoint's, and those in its recompute
  int function_depth = 0;
  CompiledDense compiled_dense;
  LoweredRegion lowered;
  BlockMask block_mask;
  VariantFacts flex_facts;  // of the dense flex call that runs
  FlexArguments flex_arguments;
  int compiled_depth = 0;          // open compiled regions
  int64_t compiled_function = -1;  // sequence number of the compiled autograd function that runs now
  int64_t function = -1;           // that of the autograd function whose forward runs now, with gradients off
  std::unique_ptr<CallCaches> caches;
  InlineMeter* inline_meter = nullptr;  // while a reference run goes on here: its allocations are not the program's
  int finishing = -1;                   // candidate whose PV product runs now
  bool loose_calls = false;             // see collectors/cupti/past_dispatcher.h
  std::shared_ptr<struct PastDispatcher> past;

  CallCaches& Caches() {
    if (caches == nullptr) caches = std::make_unique<CallCaches>();
    return *caches;
  }
};

// This thread's state, made at first use; null on a thread whose locals are already destroyed, and when there is no memory.
ThreadState* CurrentThread() noexcept;
// Needs the state; defines the kThread record at first use.
uint32_t ThreadId(ThreadState* state) noexcept;

// For the end of the process, when other threads may still run: every state that was ever made.
void VisitThreads(void (*visit)(ThreadState*)) noexcept;

class Inside {  // marks code of ours; nests
 public:
  explicit Inside(ThreadState* state) noexcept : state_(state), former_(state->inside) { state->inside = true; }
  ~Inside() { state_->inside = former_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  ThreadState* state_;
  bool former_;
};

}  // namespace attntrace
