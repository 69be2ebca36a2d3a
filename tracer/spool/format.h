// The bytes of a spool: the file that a traced process writes while it runs and that the launcher reads afterwards.
//
// Private and of one exact version: writer (collectors/) and reader (report/decode) are built together, and a reader
// refuses any other version. The report (report/report.proto) is what users keep.
//
//   [Header | 4 KiB][VariantCounters x kMaxVariants][Event x kRingEvents][definition log ... kLogBytes]
//
// One file a process, mapped MAP_SHARED, so every store that happened before a SIGKILL is in the file. Three ways to write:
//   counters     in place, relaxed atomics; a reader of a dead process sees each whole.
//   definitions  appended to the log: the payload first, the record's size last with release; size 0 ends the log, so a
//                torn record is simply not there.
//   events       a ring; an entry whose `sequence` does not match its place is torn and skipped.
// Nothing is ever moved or freed. When the log or the slots are full the writer counts what it drops.
#pragma once

#include <atomic>
#include <cstdint>

#include "tracer/spool/words.h"

namespace attntrace::spool {

inline constexpr char kMagic[8] = {'A', 'T', 'T', 'N', 'S', 'P', 'L', '\n'};
inline constexpr uint32_t kVersion = 9;  // Bump with any change in this file or in words.h.

inline constexpr size_t kHeaderBytes = 4096;
inline constexpr uint32_t kMaxVariants = 2048;
inline constexpr uint32_t kRingEvents = 2048;
inline constexpr size_t kMaxDims = 5;
inline constexpr int kMaxDevices = 16;

// How a traced process ended, as far as it could say so itself.
enum class State : uint32_t { kStarting = 0, kActive = 1, kCleanExit = 2 };

struct DeviceTotals {  // One CUDA device, by index. Bytes as PyTorch's caching allocator reports them.
  std::atomic<int64_t> live_bytes;
  std::atomic<int64_t> peak_bytes;
  std::atomic<uint64_t> allocated_bytes;   // sum over all allocations
  std::atomic<uint64_t> attributed_bytes;  // of these, inside an attention call
  std::atomic<int64_t> reserved_now;       // that the allocator had taken from the driver, and the highest of it
  std::atomic<int64_t> reserved_bytes;
  // Beyond that, at the newest reading of the driver's own figures; device_bytes 0: never read.
  std::atomic<int64_t> other_bytes;
  std::atomic<int64_t> device_bytes;
  std::atomic<int64_t> cupti_bytes;  // of other_bytes: came while CUPTI was switched on
};

struct Header {
  char magic[8];
  uint32_t version;
  uint32_t header_bytes;  // kHeaderBytes, a second check on the build
  int32_t pid;
  int32_t parent_pid;
  uint64_t start_ticks;  // field 22 of /proc/self/stat: tells a reused pid
  int32_t rank;          // RANK, LOCAL_RANK, WORLD_SIZE of the environment; -1 where unset
  int32_t local_rank;
  int32_t world_size;
  int32_t forked_from;  // pid whose spool this one was copied from, or 0
  uint64_t start_realtime_ns;
  uint64_t start_monotonic_ns;
  std::atomic<uint64_t> last_event_monotonic_ns;
  std::atomic<State> state;
  std::atomic<uint32_t> variants_used;  // slots handed out; a slot is real once its kVariant record is in the log
  std::atomic<uint64_t> log_bytes;      // where the next record goes; the reader trusts record sizes, not this
  std::atomic<uint64_t> next_event;
  std::atomic<uint64_t> counters[static_cast<size_t>(Counter::kCount)];
  DeviceTotals devices[kMaxDevices];
};
static_assert(sizeof(Header) <= kHeaderBytes);

// What is counted for a variant. Bytes are of the call's own device; a peak is the highest sum of live bytes that the call
// itself allocated, over what was live when it started. Times are host time in ns.
struct VariantCounters {
  std::atomic<uint64_t> calls;
  std::atomic<int64_t> peak_bytes;        // highest of any call
  std::atomic<int64_t> last_peak_bytes;   // of the newest call
  std::atomic<int64_t> kept_bytes;        // live at the end of the newest call: output and what is saved for backward
  std::atomic<uint64_t> allocated_bytes;  // sum over all calls and allocations
  std::atomic<int64_t> score_bytes;       // largest single block of the size of a score matrix, 0 if none was seen
  std::atomic<uint64_t> host_ns;          // sum
  std::atomic<uint64_t> first_ns;         // monotonic, since the process's start_monotonic_ns
  std::atomic<uint64_t> last_ns;
  std::atomic<int64_t> min_seq_kv;  // of folded variants, where shapes differ; else 0
  std::atomic<int64_t> max_seq_kv;
  std::atomic<uint64_t> mask_contents;  // bit per MaskContent seen: masks are read at the 1st, 2nd, 4th, 8th ... call
  // CUDA. Launches are counted while kernels are watched, replays whenever a graph that holds calls of this variant is
  // launched.
  std::atomic<uint64_t> kernel_launches;   // attributed to this variant
  std::atomic<uint64_t> kernel_instances;  // calls that were watched from their start to their end
  std::atomic<uint64_t> replayed_calls;    // run again by graph launches, beside `calls`
  std::atomic<uint64_t> replayed_kernels;
  // Only with --gpu-time: on the device, of the launches whose records came, replays among them.
  std::atomic<uint64_t> device_ns;
  std::atomic<uint64_t> timed_launches;
};
static_assert(sizeof(VariantCounters) == 144);

struct Event {                     // one attention call, for the post-mortem
  std::atomic<uint64_t> sequence;  // index + 1 of this event in the whole run; written last
  uint64_t end_ns;                 // monotonic, since start
  uint32_t slot;
  uint32_t thread;  // id of a kThread record
  int64_t peak_bytes;
  int64_t live_bytes;  // process, same device, at the end
  uint64_t host_ns;
  int32_t layer;  // -1 unknown
  uint32_t reserved;
};
static_assert(sizeof(Event) == 56);

inline constexpr size_t kCountersOffset = kHeaderBytes;
inline constexpr size_t kRingOffset = kCountersOffset + kMaxVariants * sizeof(VariantCounters);
inline constexpr size_t kLogOffset = kRingOffset + kRingEvents * sizeof(Event);
inline constexpr size_t kFileBytes = 7u << 20;
inline constexpr size_t kLogBytes = kFileBytes - kLogOffset;
static_assert(kLogOffset % 8 == 0);

// ---- definition log -------------------------------------------------------------------------------------------------------
enum class RecordKind : uint16_t {
  kString = 1,    // id; payload: bytes
  kFrame,         // id; FrameDef
  kPath,          // id; PathDef then PathDef::frames u32 frame ids, innermost first
  kModule,        // id; ModuleDef
  kVariant,       // id = slot; VariantDef
  kLayer,         // id = slot; LayerDef: one layer of the model that this variant was seen in
  kGate,          // id = slot; GateDef
  kEnvironment,   // EnvironmentDef; the newest of a key wins
  kThread,        // id; ThreadDef
  kNote,          // NoteDef: something that could not be seen, or a collector that switched itself off
  kKernel,        // id = slot; KernelDef: one of the kernels that a watched call launched; all of a call have one `list`
  kIncident,      // id = slot, whose counters are the incident's; IncidentDef
  kIncidentGate,  // id = slot of an incident; GateDef
  kFact,          // id = slot of a variant; FactDef
  kReference,     // id = slot of a variant; ReferenceDef then its text: a step of a reference run made inside the program
  kLast = kReference,
};

struct RecordHeader {
  std::atomic<uint32_t> bytes;  // whole record with this header, a multiple of 8; written last, release
  RecordKind kind;
  uint16_t reserved;
  uint32_t id;
  uint32_t payload_bytes;  // before padding
};
static_assert(sizeof(RecordHeader) == 16);

// Strings are ids of kString records, written before their first use; 0 is the empty string.
using StringId = uint32_t;

enum class FrameKind : uint32_t { kPython = 0, kNative = 1 };
struct FrameDef {
  FrameKind kind;
  StringId file;      // Python: co_filename. Native: path of the mapped object
  StringId function;  // Python: co_qualname where there is one. Native: symbol, demangled, may be 0
  StringId module;    // Python: __name__ of the frame's globals
  int32_t line;       // Python: current line
  uint32_t reserved;
  uint64_t offset;  // Native: offset in the object, for a symboliser outside
};

enum PathFlags : uint32_t {
  kPathTruncated = 1,  // more frames than kept; the outermost are missing
  kPathNoPython = 2,   // thread without a Python state: native frames only
  kPathCompiled = 4,   // inside a torch.compile'd region
};
struct PathDef {
  uint32_t frames;
  uint32_t flags;
};

enum class TriState : int8_t { kUnknown = -1, kNo = 0, kYes = 1 };

// The attention module a call ran in, as its own __dict__ and its config's say at the first call of a variant. A bare
// "no selection" and "not readable" differ: see selection_state.
enum class SelectionState : uint8_t { kNotAttention = 0, kUnset = 1, kSet = 2 };
struct ModuleDef {
  StringId class_name;    // LlamaAttention
  StringId class_module;  // transformers.models.llama.modeling_llama
  StringId config_class;  // LlamaConfig, 0 where the module has no config
  StringId selection;     // config._attn_implementation as this module sees it
  StringId function;      // module:qualname of the attention function in the call path, where one was found
  SelectionState selection_state;
  TriState is_causal;  // module.is_causal
  TriState training;
  uint8_t reserved;
  StringId output_attentions;  // where it was asked for ("config", "argument"), else 0
  StringId model_class;        // outermost module of the call path, 0 if none
  StringId
      attention_mask;  // type of the attention_mask the attention function was given ("None", "Tensor", "BlockMask"), 0 unknown
  StringId model_selection;  // config._attn_implementation of the outermost module of the call path that has such a config
  StringId no_sdpa_class;    // class of the innermost PreTrainedModel around it, where its _supports_sdpa is False
  StringId requested;        // implementation asked for this part when the model was made, as far as that was seen
  StringId requested_by;  // "name" (one for the whole model), "dict" (one a part), "config", "call" (later, what is unknown),
                          // 0: none seen
  StringId part;          // path of the innermost PreTrainedModel around it in that outermost module, 0 where they are the same
  StringId part_config;   // key of the part's configuration in the outermost one ("vision_config"), 0 where it is not there
  uint32_t built_path;       // kPath id of what built the module, where it selects nothing and that was seen; else 0
};

struct TensorDef {
  uint8_t present;
  Dtype dtype;
  DeviceKind device;
  int8_t device_index;
  uint8_t requires_grad;
  uint8_t rank;    // may exceed kMaxDims: then sizes hold the last kMaxDims
  uint8_t nested;  // 0 dense, 1 strided nested, 2 jagged; sizes are then unknown
  uint8_t reserved;
  int64_t sizes[kMaxDims];
  int64_t strides[kMaxDims];  // in elements
};

enum VariantFlags : uint32_t {
  kCausal = 1,  // is_causal=True reached the operator
  kGqa = 2,     // enable_gqa, or fewer K/V heads than Q heads
  kScaleGiven = 4,
  kGradMode = 8,       // autograd recorded the call
  kShapesFolded = 16,  // many shapes counted as one: sizes are of the first
  kDirect = 32,        // the fused operator was called without scaled_dot_product_attention
  kGatesTaken = 64,    // kGate records are complete for this variant
  kInference = 128,    // torch.inference_mode
  kDeterministic = 256,
  kAutocast = 512,
  kMaskAdded = 1024,    // hand-written: a bool mask was added to the scores, which hides nothing
  kCausalAsked = 2048,  // flex_attention: its caller was given is_causal=True
  kScoreMod = 4096,     // flex_attention was given a score_mod
};

struct VariantDef {
  uint32_t path;          // kPath id, 0 none
  uint32_t module;        // kModule id, 0 none
  uint32_t thread;        // kThread id of the first call
  uint32_t forward_slot;  // backward: slot of its forward + 1; else 0
  StringId op;            // aten::scaled_dot_product_attention, FlexAttentionAutogradOp, "eager", ...
  StringId kernel_op;     // the operator or autograd node that computed it
  StringId no_path_reason;
  uint32_t flags;
  Phase phase;
  Backend backend;
  PathKind path_kind;
  MaskKind mask_kind;
  MaskContent mask_content;
  uint8_t reserved[3];
  double dropout_p;
  double scale;  // where kScaleGiven
  uint64_t mask_bytes;
  TensorDef q, k, v, mask;
};

struct LayerDef {
  int32_t layer;  // layer_idx of the module, or -1
  StringId name;  // reserved for the module's qualified name, 0 unknown
};

struct GateDef {
  Backend backend;  // the backend that this condition ruled out
  uint8_t ours;     // 1: the words are ours, PyTorch refuses silently here
  uint16_t order;
  StringId text;
};

// Keys: "torch", "python", "transformers", "cuda" are versions; "device.<n>" names a device used; "package.<name>" is a loaded
// attention package's version; "attention.<name>" the module:qualname registered in ALL_ATTENTION_FUNCTIONS. Any other key is a
// setting and shown under its own name.
struct EnvironmentDef {
  StringId key;
  StringId value;
};

struct KernelDef {
  StringId name;      // as CUPTI gives it, mangled
  uint32_t launches;  // by one call
  uint32_t list;      // lists of one variant count up; the newest is what its later calls launch
  uint32_t reserved;
};

// What else is known of a variant. Keys are those of Variant.facts in report.proto.
struct FactDef {
  StringId key;
  StringId value;
};

// Something that happened and was no attention call: an exception, an operator that failed, a mask that was made on the full
// grid.
struct IncidentDef {
  IncidentKind kind;
  uint8_t reserved[3];
  int32_t layer;      // -1 unknown
  uint32_t path;      // kPath id, 0 none
  uint32_t module;    // kModule id, 0 none
  uint32_t thread;    // kThread id
  uint32_t leads_to;  // slot + 1 of the exception that this one led to; 0 none
  StringId type;      // class of an exception, module.qualname
  StringId message;
  StringId op;  // operator that failed
  StringId no_path_reason;
  uint32_t flags;        // VariantFlags
  uint32_t create_path;  // double backward: kPath id of the first backward, which made the graph of the second
  double dropout_p;
  uint64_t bytes;  // of the full grid
  TensorDef q, k, v, mask;
};

// Then `bytes` of text: purpose, request and response on a line each, as kernels/protocol.h writes them.
struct ReferenceDef {
  uint32_t bytes;
  uint32_t reserved;
};

struct ThreadDef {
  uint64_t tid;
  StringId name;
};

struct NoteDef {
  StringId code;  // blind-spot code: "cupti", "declined", "log-full", ...
  StringId text;
};

}  // namespace attntrace::spool
