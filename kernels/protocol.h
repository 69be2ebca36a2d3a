// What `attntrace` asks of `attntrace-reference` and is told: one line a request on its standard input, one line a response on
// its standard output, key=value words with %XX for what would break a line. Both sides are built together. Nothing but the
// standard library, since a reference executable is built where Abseil and Protobuf may not be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attntrace::reference {

// X(enumerator, "name"). How a request says what is to be run.
#define ATTNTRACE_REFERENCE_PATHS(X)                                              \
  X(kFused, "fused") /* SDPA with its math backend switched off */                \
  X(kFlash, "flash") /* SDPA pinned to one backend */                             \
  X(kEfficient, "efficient")                                                      \
  X(kCudnn, "cudnn")                                                              \
  X(kMath, "math")                                                                \
  X(kEager, "eager")                /* product, softmax, product */               \
  X(kTiled, "tiled")                /* our own kernel */                          \
  X(kFlexDense, "flex-dense")       /* flex_attention, not compiled: in Python */ \
  X(kFlexCompiled, "flex-compiled") /* compiled with Inductor: in Python */

// X(enumerator, "name", alters the result, "what is changed"). The changes that may free a kernel; a request names them, the
// reference makes them inside the measured call, and what they cost is in the figures.
#define ATTNTRACE_REFERENCE_CHANGES(X)                                                                \
  X(kAllow, "allow", false, "let the fused backends in")                                              \
  X(kSdpa, "sdpa", false, "one call of scaled_dot_product_attention")                                 \
  X(kCompile, "compile", false, "torch.compile(flex_attention)")                                      \
  X(kUnsqueeze, "unsqueeze", false, "q, k and v with a head dimension of one")                        \
  X(kContiguous, "contiguous", false, "q, k and v contiguous")                                        \
  X(kDropMask, "drop-mask", false, "is_causal=True or no mask in place of a mask that says the same") \
  X(kMaskDtype, "mask-dtype", false, "the mask in q's dtype")                                         \
  X(kRepeatHeads, "repeat-heads", false, "heads of k and v repeated, enable_gqa left out")            \
  X(kPadHead, "pad-head", false, "q, k and v padded to one head size, the output cut back")           \
  X(kCastBFloat16, "cast-bfloat16", true, "q, k and v cast to bfloat16")                              \
  X(kCastFloat32, "cast-float32", true, "q, k and v cast to float32")                                 \
  X(kDetachMask, "detach-mask", true, "the mask detached: it gets no gradient")                       \
  X(kMoveDropout, "move-dropout", true, "dropout on the output in place of the probabilities")        \
  X(kNoDropout, "no-dropout", true, "no dropout")

// The machine-readable key of an advice: which change a reference run makes to prove it. kNone: no run can.
enum class Change {
  kNone,
#define ATTNTRACE_CHANGE(enumerator, name, alters, text) enumerator,
  ATTNTRACE_REFERENCE_CHANGES(ATTNTRACE_CHANGE)
#undef ATTNTRACE_CHANGE
};

struct ChangeInfo {
  Change change;
  const char* name;
  bool alters_result;
  const char* text;
};
// Null where there is no such change.
const ChangeInfo* FindChange(const std::string& name);
const char* NameOf(Change change);  // "" for kNone

struct TensorSpec {
  std::vector<int64_t> sizes, strides;  // elements
  std::string dtype;                    // names of tracer/spool/words.h
  bool requires_grad = false;
};

struct Request {
  uint64_t id = 0;
  std::string path;
  std::vector<std::string> changes;
  std::string device = "cpu";  // "cpu", "cuda:0"
  TensorSpec q, k, v;
  std::optional<TensorSpec> mask;
  // Of tracer/spool/words.h: how the mask is filled; of a flex call, which has no tensor for one, what its block mask hides.
  std::string mask_content = "other";
  double dropout = 0;
  bool causal = false, gqa = false;
  std::optional<double> scale;
  bool backward = false;
  bool check = false;       // compare with float64 math
  uint64_t limit_ms = 200;  // time for repeats, over the first run
};

// Bytes are tensor storage as PyTorch's allocators report it, over what was live when the phase began; times are medians.
struct Response {
  uint64_t id = 0;
  std::string status;   // "ok", "refused", "oom", "error"
  std::string words;    // of a refusal or an error: PyTorch's own
  std::string backend;  // that really ran
  int64_t forward_peak_bytes = 0;
  int64_t backward_peak_bytes = 0;
  int64_t total_peak_bytes = 0;  // of forward and backward, over what was live before both
  int64_t kept_bytes = 0;        // live between them
  // cuBLAS's on the device: made by a thread's first product, kept by PyTorch, and in none of the figures above. 0 unknown.
  int64_t workspace_bytes = 0;
  uint64_t forward_ns = 0;
  uint64_t backward_ns = 0;
  uint32_t repeats = 0;
  std::optional<double> max_difference;  // largest of output and gradients, absolute
};

// One line without its end.
std::string Encode(const Request& request);
std::string Encode(const Response& response);
// False where the line is none; `why` then says so.
bool Decode(const std::string& line, Request* request, std::string* why);
bool Decode(const std::string& line, Response* response, std::string* why);

}  // namespace attntrace::reference
