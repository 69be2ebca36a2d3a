// Compiled once a CPU level, with ATTNTRACE_LEVEL, ATTNTRACE_VECTOR_BYTES and the size of the register block on the command
// line.
#include "kernels/tiled/cpu_level.h"

#include "kernels/tiled/cpu_backward.h"
#include "kernels/tiled/cpu_bias.h"
#include "kernels/tiled/cpu_forward.h"

namespace attntrace::tiled {
namespace ATTNTRACE_LEVEL {
namespace {

// Threads keep off each other's cache lines.
template <typename T>
size_t Rounded(size_t elements) {
  return (elements + 31) / 32 * 32;
}

int64_t Tiles(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }

template <typename T>
T* ThreadPart(const Call& call, size_t elements, int thread) {
  return static_cast<T*>(call.workspace) + Rounded<T>(elements) * static_cast<size_t>(thread);
}

template <typename T>
size_t Workspace(const Call& call, bool backward) {
  const size_t threads = static_cast<size_t>(call.threads);
  if (!backward) return Rounded<T>(ForwardSpace<T>::Size(call)) * threads * sizeof(T);
  const size_t rows = Rounded<T>(static_cast<size_t>(call.batch * call.heads * call.seq_q));
  return (Rounded<T>(BackwardSpace<T>::Size(call)) * threads + rows) * sizeof(T);
}

template <typename T>
void Forward(const Call& call, Parallel parallel) {
  const auto task = [](const void* context, int64_t index, int thread) {
    const Call& call = *static_cast<const Call*>(context);
    const int64_t tiles = Tiles(call.seq_q, kTileQ);
    const int64_t tile = tiles - 1 - index % tiles;  // under a causal mask the long ones first
    ForwardTile<T>(call, index / tiles / call.heads, index / tiles % call.heads, tile * kTileQ,
                   ThreadPart<T>(call, ForwardSpace<T>::Size(call), thread));
  };
  parallel(call.batch * call.heads * Tiles(call.seq_q, kTileQ), call.threads, task, &call);
}

template <typename T>
struct BackwardContext {
  const Call* call;
  T* dot;
};

template <typename T>
void Dot(const void* context, int64_t row, int) {
  const auto& [call_, dot] = *static_cast<const BackwardContext<T>*>(context);
  const Call& call = *call_;
  const int64_t b = row / call.heads, h = row % call.heads;
  for (int64_t r = 0; r < call.seq_q; ++r) {
    const int64_t o = Offset(call.out, b, h) + r * call.out.stride[2];
    const int64_t g = Offset(call.grad_out, b, h) + r * call.grad_out.stride[2];
    T sum = T();
    for (int64_t j = 0; j < call.dim_v; ++j) {
      sum += Load<T>(call.out.data, call.out.type, o + j * call.out.stride[3]) *
             Load<T>(call.grad_out.data, call.grad_out.type, g + j * call.grad_out.stride[3]);
    }
    dot[row * call.seq_q + r] = sum;
  }
}

template <typename T>
void Whole(const void* context, int64_t index, int thread) {
  const auto& [call, dot] = *static_cast<const BackwardContext<T>*>(context);
  const Part<T> part{index / call->heads_kv, index % call->heads_kv, 0, call->seq_kv, 0, call->seq_q, true, true};
  BackwardPart<T>(*call, dot, part, ThreadPart<T>(*call, BackwardSpace<T>::Size(*call), thread));
}

template <typename T>
void Keys(const void* context, int64_t index, int thread) {
  const auto& [call, dot] = *static_cast<const BackwardContext<T>*>(context);
  const int64_t tiles = Tiles(call->seq_kv, kTileKv), unit = index / tiles, c0 = index % tiles * kTileKv;
  const Part<T> part{
      unit / call->heads_kv, unit % call->heads_kv, c0, Least(c0 + kTileKv, call->seq_kv), 0, call->seq_q, false, true};
  BackwardPart<T>(*call, dot, part, ThreadPart<T>(*call, BackwardSpace<T>::Size(*call), thread));
}

template <typename T>
void Queries(const void* context, int64_t index, int thread) {
  const auto& [call, dot] = *static_cast<const BackwardContext<T>*>(context);
  const int64_t tiles = Tiles(call->seq_q, kTileQ), unit = index / tiles, r0 = index % tiles * kTileQ;
  const int64_t r_end = Least(r0 + kTileQ, call->seq_q), c_end = call->causal ? Least(call->seq_kv, r_end) : call->seq_kv;
  const Part<T> part{unit / call->heads_kv, unit % call->heads_kv, 0, c_end, r0, r_end, true, false};
  BackwardPart<T>(*call, dot, part, ThreadPart<T>(*call, BackwardSpace<T>::Size(*call), thread));
}

template <typename T>
void Bias(const void* context, int64_t index, int thread) {
  const auto& [call, dot] = *static_cast<const BackwardContext<T>*>(context);
  BiasTask<T>(*call, dot, index, ThreadPart<T>(*call, BackwardSpace<T>::Size(*call), thread));
}

template <typename T>
void Backward(const Call& call, Parallel parallel) {
  const int64_t units = call.batch * call.heads_kv;
  BackwardContext<T> context{&call, nullptr};
  context.dot = ThreadPart<T>(call, BackwardSpace<T>::Size(call), call.threads);
  parallel(call.batch * call.heads, call.threads, Dot<T>, &context);
  if (BackwardSpace<T>::OwnsHeads(call)) {  // five products a tile
    parallel(units, call.threads, Whole<T>, &context);
  } else {  // keys and queries cut apart: seven
    parallel(units * Tiles(call.seq_kv, kTileKv), call.threads, Keys<T>, &context);
    if (call.grad_q.data != nullptr) parallel(units * Tiles(call.seq_q, kTileQ), call.threads, Queries<T>, &context);
  }
  if (call.grad_mask.data != nullptr) parallel(BiasTasks(call).Count(), call.threads, Bias<T>, &context);
}

size_t AnyWorkspace(const Call& call, bool backward) {
  return call.q.type == Type::kFloat64 ? Workspace<double>(call, backward) : Workspace<float>(call, backward);
}
void AnyForward(const Call& call, Parallel parallel) {
  call.q.type == Type::kFloat64 ? Forward<double>(call, parallel) : Forward<float>(call, parallel);
}
void AnyBackward(const Call& call, Parallel parallel) {
  call.q.type == Type::kFloat64 ? Backward<double>(call, parallel) : Backward<float>(call, parallel);
}

}  // namespace
}  // namespace ATTNTRACE_LEVEL

const Level ATTNTRACE_LEVEL_TABLE{ATTNTRACE_LEVEL_NAME, ATTNTRACE_LEVEL::AnyWorkspace, ATTNTRACE_LEVEL::AnyForward,
                                  ATTNTRACE_LEVEL::AnyBackward};

}  // namespace attntrace::tiled
