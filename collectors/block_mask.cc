// The block masks of flex_attention: making one on the full grid, and what the one given to an uncompiled call holds.
#include <cstdio>

#include "collectors/calls.h"
#include "collectors/cupti/devices.h"
#include "collectors/environment.h"
#include "collectors/fork.h"
#include "collectors/incidents.h"
#include "collectors/mask.h"
#include "collectors/python_api.h"
#include "collectors/python_tensors.h"
#include "collectors/spool_writer.h"
#include "collectors/tensors.h"

namespace attntrace {
namespace {

using python::Object;
using python::OwnAttribute;
using python::Py;
using python::Ref;

struct Blocks {
  at::Tensor partial, full;  // for each row of blocks, how many are kept; `full` is undefined where none are told apart
  int64_t width = 0;         // of a block, in keys
};

// Of the call that runs on this thread. Takes the GIL, and does not hold it while a device is waited for.
Blocks BlocksOfFlex() {
  Blocks blocks;
  if (!python::CanEnter()) return blocks;
  const python::Section gil;
  const Ref mask = BlockMaskOfFlex();
  Object* const size = mask ? OwnAttribute(mask.get(), "BLOCK_SIZE") : nullptr;
  if (size == nullptr || Py().PyTuple_Size(size) != 2) {
    Py().PyErr_Clear();
    return blocks;
  }
  Object* const width = Py().PyTuple_GetItem(size, 1);
  Object* const full = OwnAttribute(mask.get(), "full_kv_num_blocks");
  if (python::TypeOf(width) != Py().long_type || full == nullptr) return blocks;
  blocks.full = TensorOf(full);
  if (!blocks.full.defined() && full != Py().none) return blocks;
  blocks.partial = TensorOf(OwnAttribute(mask.get(), "kv_num_blocks"));
  blocks.width = Py().PyLong_AsLong(width);
  return blocks;
}

// How much of the grid of blocks a fused kernel would compute, in percent: what BlockMask.sparsity() leaves.
void ReadDensity(int64_t columns, VariantFacts* facts) {
  const Blocks blocks = BlocksOfFlex();
  int64_t partial = 0, full = 0;
  if (blocks.width <= 0 || !SumCounts(blocks.partial, &partial) || (blocks.full.defined() && !SumCounts(blocks.full, &full))) {
    return;
  }
  const int64_t in_a_row = columns / blocks.width + (columns % blocks.width != 0 ? 1 : 0);
  const double all = static_cast<double>(blocks.partial.numel()) * static_cast<double>(in_a_row);
  const double kept = static_cast<double>(partial) + static_cast<double>(full);
  if (all <= 0 || kept < 0 || kept > all) return;
  char text[32];
  snprintf(text, sizeof(text), "%.3g", 100.0 * kept / all);
  facts->emplace_back("flex.mask_density", text);
}

}  // namespace

bool BeginBlockMask(ThreadState* state, const at::RecordFunction& event) {
  const auto inputs = event.inputs();
  if (state->block_mask.open || inputs.empty() || KindOf(inputs[0]) != TensorKind::kPlain) return false;
  const at::Tensor& grid = inputs[0].toTensor();
  if (grid.dim() != 6 || !BlocksFullGrid()) return false;
  AttachAfterFork();
  BlockMask& mask = state->block_mask;
  const Inside ours(state);
  mask.site = Where(&state->Caches().paths, state->compiled_depth);
  mask.bytes = grid.nbytes();
  const int space =
      MemorySpace(grid.is_cuda() ? DeviceKind::kCuda : DeviceKind::kCpu, grid.is_cuda() ? grid.device().index() : 0);
  mask.open = state->memory.Open(&mask.meter, space, 0);
  return mask.open;
}

void EndBlockMask(ThreadState* state) {
  BlockMask& mask = state->block_mask;
  if (!mask.open) return;
  mask.open = false;
  Incident incident;
  incident.kind = IncidentKind::kBlockMask;
  incident.site = mask.site;
  incident.op = "create_block_mask";
  incident.bytes = mask.bytes;
  incident.peak_bytes = mask.meter.Peak() + static_cast<int64_t>(mask.bytes);  // the grid itself was there before
  incident.thread = ThreadId(state);
  state->memory.Close(&mask.meter);
  const Inside ours(state);
  RecordIncident(incident);
  RefreshEnvironment();
}

void ReadFlexMask(ThreadState* state, const at::RecordFunction& event) {
  OpenCall& call = state->call;
  const CallRecord& record = call.record;
  if (record.backend != Backend::kFlexDense || record.mask_kind != MaskKind::kBlockMask ||
      call.content_now != MaskContent::kUnread) {
    return;
  }
  const auto inputs = event.inputs();
  if (inputs.empty() || KindOf(inputs[0]) != TensorKind::kPlain) return;
  const at::Tensor& visible = inputs[0].toTensor();
  if (record.q.rank != 4 || record.k.rank != 4) return;
  const int64_t rows = record.q.sizes[2], columns = record.k.sizes[2];
  if (visible.scalar_type() != at::kBool || visible.dim() != 4 || visible.size(-2) != rows || visible.size(-1) != columns)
    return;
  CallCaches& caches = state->Caches();
  const uint64_t signature = Mix(SignatureOf(record), 0xf1e);
  const uint32_t* const seen = caches.looks.Find(signature);
  const uint32_t count = seen != nullptr ? *seen + 1 : 1;
  caches.looks.Put(signature, count);
  // As for SDPA's masks: a device is waited for once, and never while a graph is captured.
  const bool captured = visible.is_cuda() && IsCapturing(visible.device().index());
  const bool readable = visible.is_cuda() ? count == 1 && !captured : (count & (count - 1)) == 0;
  const Inside ours(state);
  if (readable) call.content_now = ReadMask(visible);
  if (count == 1 && !captured) ReadDensity(columns, &state->flex_facts);
}

}  // namespace attntrace
