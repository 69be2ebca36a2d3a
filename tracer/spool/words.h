// The words both sides of the process boundary share: every closed set that a traced process writes as a number and a
// report shows as a name. Each list exists once, here; names, help, JSON and tests come from it.
//
// Included by the injected agent, so: no allocation, no exceptions, nothing but the language.
#pragma once

#include <cstddef>
#include <cstdint>

namespace attntrace {

// X(enumerator, "name in reports"). Values are part of the spool's exact version, not of the report, which holds names.

// What computed a call. Names are the product's; an entry is added here before anything may write it.
#define ATTNTRACE_BACKENDS(X)                 \
  X(kUnknown, "unknown")                      \
  X(kMath, "math")                            \
  X(kFlash, "flash")                          \
  X(kEfficient, "efficient")                  \
  X(kCudnn, "cudnn")                          \
  X(kOverrideable, "overrideable")            \
  X(kFlexDense, "flex-dense")                 \
  X(kFlexTriton, "flex-triton")               \
  X(kFlexCpp, "flex-cpp")                     \
  X(kEager, "eager")                          \
  X(kNativeMha, "native-mha")                 \
  X(kFlashAttn2, "flash-attn-2")              \
  X(kFlashAttn3, "flash-attn-3")              \
  X(kFlashAttn4, "flash-attn-4")              \
  X(kXformers, "xformers")                    \
  X(kTransformerEngine, "transformer-engine") \
  X(kSage, "sage")                            \
  X(kFlashInfer, "flashinfer")                \
  X(kVarlen, "varlen")                        \
  X(kVllm, "vllm")                            \
  X(kCustom, "custom")                        \
  X(kNone, "none")

#define ATTNTRACE_PHASES(X) \
  X(kForward, "forward")    \
  X(kBackward, "backward")  \
  X(kRecompute, "recompute")

// fused: scores are never stored. dense: an Sq x Sk tensor per head is stored. quadratic: a fused kernel fed an Sq x Sk mask
// or bias. unknown: nothing observed proves either (said in the report, never guessed).
#define ATTNTRACE_PATHS(X) \
  X(kUnknown, "unknown")   \
  X(kFused, "fused")       \
  X(kDense, "dense")       \
  X(kQuadratic, "quadratic")

// exception: nobody caught it. thread-exception: it ended a thread. cause: another exception was raised while it was handled,
// or a variable of a frame of another one holds it. caught: seen while the program handled it. operator: an attention operator
// threw; whether that was caught is not known there. block-mask: create_block_mask on the full grid. double-backward: a
// derivative that a kernel does not have was asked for. dropped: the program caught it and let it go, seen when it died.
#define ATTNTRACE_INCIDENTS(X)            \
  X(kException, "exception")              \
  X(kThreadException, "thread-exception") \
  X(kCause, "cause")                      \
  X(kCaught, "caught")                    \
  X(kOperator, "operator")                \
  X(kBlockMask, "block-mask")             \
  X(kDoubleBackward, "double-backward")   \
  X(kDropped, "dropped")

#define ATTNTRACE_MASK_KINDS(X) \
  X(kNone, "none")              \
  X(kBool, "bool")              \
  X(kFloat, "float")            \
  X(kBlockMask, "block-mask")   \
  X(kUnknown, "unknown")

// What a mask says, read once per variant where its memory can be read.
#define ATTNTRACE_MASK_CONTENTS(X)    \
  X(kUnread, "unread")                \
  X(kAllTrue, "all-true")             \
  X(kPlainCausal, "plain-causal")     \
  X(kPadding, "padding")              \
  X(kCausalPadding, "causal-padding") \
  X(kOther, "other")

#define ATTNTRACE_DTYPES(X)     \
  X(kUnknown, "unknown", 0)     \
  X(kFloat32, "float32", 4)     \
  X(kFloat64, "float64", 8)     \
  X(kFloat16, "float16", 2)     \
  X(kBFloat16, "bfloat16", 2)   \
  X(kBool, "bool", 1)           \
  X(kInt8, "int8", 1)           \
  X(kUInt8, "uint8", 1)         \
  X(kInt16, "int16", 2)         \
  X(kInt32, "int32", 4)         \
  X(kInt64, "int64", 8)         \
  X(kFloat8, "float8", 1)       \
  X(kComplex64, "complex64", 8) \
  X(kComplex128, "complex128", 16)

#define ATTNTRACE_DEVICES(X) \
  X(kCpu, "cpu")             \
  X(kCuda, "cuda")           \
  X(kOther, "other")

// Process totals, kept in the spool's header and shown in the report under these names. Bytes are bytes of tensor storage as
// PyTorch's allocators report them; counts are events.
#define ATTNTRACE_COUNTERS(X)                                                                                     \
  X(kForwardCalls, "calls_forward")                                                                               \
  X(kBackwardCalls, "calls_backward")                                                                             \
  X(kRecomputeCalls, "calls_recompute")                                                                           \
  X(kOpenCalls, "calls_open") /* operators of attention that run now: not 0 in a process that died in one */      \
  X(kCpuLiveBytes, "cpu_live_bytes")                                                                              \
  X(kCpuPeakBytes, "cpu_peak_bytes")                                                                              \
  X(kCpuAllocatedBytes, "cpu_allocated_bytes")   /* sum over all allocations */                                   \
  X(kCpuAttributedBytes, "cpu_attributed_bytes") /* of these, inside an attention call */                         \
  X(kCpuAllocations, "cpu_allocations")                                                                           \
  X(kCpuFrees, "cpu_frees")                                                                                       \
  X(kCpuUnknownFrees, "cpu_unknown_frees")                                                                        \
  X(kBackwardUnmatched, "backward_unmatched") /* an attention node of no known call */                            \
  X(kForwardForgotten, "forward_forgotten")   /* calls dropped from the bounded table */                          \
  X(kTracingEvents, "tracing_events")         /* FakeTensor, wrapper, meta: not calls */                          \
  X(kVariantsDropped, "variants_dropped")                                                                         \
  X(kVariantsFolded, "variants_folded") /* shapes folded into one variant */                                      \
  X(kDefinitionsDropped, "definitions_dropped")                                                                   \
  X(kFaults, "faults") /* exceptions caught at our entries */                                                     \
  X(kNoCallPath, "no_call_path")                                                                                  \
  X(kForks, "forks")                                                                                              \
  X(kTentativeDropped, "tentative_dropped")                                                                       \
  /* CUDA kernels: launches while they were watched. Seen = attributed to an attention call + unattributed. */    \
  X(kKernelLaunches, "kernel_launches_seen")                                                                      \
  X(kKernelLaunchesAttributed, "kernel_launches_attributed")                                                      \
  X(kKernelLaunchesUnattributed, "kernel_launches_unattributed")                                                  \
  X(kGraphLaunches, "graph_launches_seen")             /* replays of CUDA graphs, while watched */                \
  X(kGraphKernelsReplayed, "graph_kernels_attributed") /* kernels of attention calls in them */                   \
  X(kKernelNamesDropped, "kernel_names_dropped")       /* more distinct kernels than a call or the table holds */ \
  /* --gpu-time: what CUPTI's records say. A record that came is timed or bad; one that did not is lost. */       \
  X(kGpuKernelsTimed, "gpu_kernels_timed") /* of the whole process */                                             \
  X(kGpuNs, "gpu_ns_seen")                 /* sum of their time on devices */                                     \
  X(kGpuNsAttributed, "gpu_ns_attributed") /* of it, kernels of attention calls */                                \
  X(kGpuRecordsBad, "gpu_records_bad")     /* without times, or with times of another clock */                    \
  X(kGpuRecordsLost, "gpu_records_lost")   /* dropped by CUPTI for want of a buffer */                            \
  X(kGpuLaunchesLost, "gpu_launches_lost") /* launches of calls, forgotten before their record came */

#define ATTNTRACE_ENUMERATOR(e, ...) e,
#define ATTNTRACE_NAME(e, name, ...) name,
#define ATTNTRACE_DEFINE_WORDS(Type, LIST, storage)                               \
  enum class Type : storage { LIST(ATTNTRACE_ENUMERATOR) kCount };                \
  inline const char* NameOf(Type value) noexcept {                                \
    static constexpr const char* kNames[] = {LIST(ATTNTRACE_NAME)};               \
    return value < Type::kCount ? kNames[static_cast<size_t>(value)] : "unknown"; \
  }

ATTNTRACE_DEFINE_WORDS(Backend, ATTNTRACE_BACKENDS, uint8_t)
ATTNTRACE_DEFINE_WORDS(Phase, ATTNTRACE_PHASES, uint8_t)
ATTNTRACE_DEFINE_WORDS(PathKind, ATTNTRACE_PATHS, uint8_t)
ATTNTRACE_DEFINE_WORDS(MaskKind, ATTNTRACE_MASK_KINDS, uint8_t)
ATTNTRACE_DEFINE_WORDS(MaskContent, ATTNTRACE_MASK_CONTENTS, uint8_t)
ATTNTRACE_DEFINE_WORDS(IncidentKind, ATTNTRACE_INCIDENTS, uint8_t)
ATTNTRACE_DEFINE_WORDS(Dtype, ATTNTRACE_DTYPES, uint8_t)
ATTNTRACE_DEFINE_WORDS(DeviceKind, ATTNTRACE_DEVICES, uint8_t)
ATTNTRACE_DEFINE_WORDS(Counter, ATTNTRACE_COUNTERS, uint32_t)

inline size_t BytesOf(Dtype value) noexcept {
#define ATTNTRACE_BYTES(e, name, bytes) bytes,
  static constexpr size_t kBytes[] = {ATTNTRACE_DTYPES(ATTNTRACE_BYTES)};
#undef ATTNTRACE_BYTES
  return value < Dtype::kCount ? kBytes[static_cast<size_t>(value)] : 0;
}

}  // namespace attntrace
