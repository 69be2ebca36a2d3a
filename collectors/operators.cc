#include "collectors/operators.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/dispatch/OperatorOptions.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

namespace attntrace {
namespace {

// How a row matches: the whole name, or the part after "::" (custom operators whose namespace varies from build to build).
enum class Match : uint8_t { kName, kSuffix };

struct Row {
  const char* text;
  Match match;
  Role role;
  Backend backend;
  bool rows_first;
};

constexpr Row kTable[] = {
    {"aten::scaled_dot_product_attention", Match::kName, Role::kSdpa, Backend::kUnknown, false},
    {"aten::_scaled_dot_product_attention_math", Match::kName, Role::kKernel, Backend::kMath, false},
    {"aten::_scaled_dot_product_attention_math_for_mps", Match::kName, Role::kKernel, Backend::kMath, false},
    {"aten::_scaled_dot_product_flash_attention", Match::kName, Role::kKernel, Backend::kFlash, false},
    {"aten::_scaled_dot_product_flash_attention_for_cpu", Match::kName, Role::kKernel, Backend::kFlash, false},
    {"aten::_scaled_dot_product_efficient_attention", Match::kName, Role::kKernel, Backend::kEfficient, false},
    {"aten::_scaled_dot_product_cudnn_attention", Match::kName, Role::kKernel, Backend::kCudnn, false},
    {"aten::_scaled_dot_product_fused_attention_overrideable", Match::kName, Role::kKernel, Backend::kOverrideable, false},
    {"aten::_flash_attention_forward", Match::kName, Role::kKernel, Backend::kFlash, true},
    {"aten::_flash_attention_forward_no_dropout_inplace", Match::kName, Role::kKernel, Backend::kFlash, true},
    {"aten::_efficient_attention_forward", Match::kName, Role::kKernel, Backend::kEfficient, true},
    {"aten::_cudnn_attention_forward", Match::kName, Role::kKernel, Backend::kCudnn, true},
    {"aten::_native_multi_head_attention", Match::kName, Role::kKernel, Backend::kNativeMha, true},
    {"aten::_scaled_dot_product_flash_attention_backward", Match::kName, Role::kKernelBackward, Backend::kFlash, false},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", Match::kName, Role::kKernelBackward, Backend::kFlash, false},
    {"aten::_scaled_dot_product_efficient_attention_backward", Match::kName, Role::kKernelBackward, Backend::kEfficient, false},
    {"aten::_scaled_dot_product_cudnn_attention_backward", Match::kName, Role::kKernelBackward, Backend::kCudnn, false},
    {"aten::_scaled_dot_product_fused_attention_overrideable_backward", Match::kName, Role::kKernelBackward,
     Backend::kOverrideable, false},
    {"aten::_flash_attention_backward", Match::kName, Role::kKernelBackward, Backend::kFlash, true},
    {"aten::_efficient_attention_backward", Match::kName, Role::kKernelBackward, Backend::kEfficient, true},
    {"aten::_cudnn_attention_backward", Match::kName, Role::kKernelBackward, Backend::kCudnn, true},
    {"torch_attn::_varlen_attn", Match::kName, Role::kKernel, Backend::kVarlen, true},
    {"torch_attn::_varlen_attn_out", Match::kName, Role::kKernel, Backend::kVarlen, true},
    {"torch_attn::_varlen_attn_backward", Match::kName, Role::kKernelBackward, Backend::kVarlen, true},
    {"flash_attn_3::fwd", Match::kName, Role::kKernel, Backend::kFlashAttn3, true},
    {"flash_attn_3::bwd", Match::kName, Role::kKernelBackward, Backend::kFlashAttn3, true},
    {"flash_attn_3::_flash_attn_forward", Match::kName, Role::kKernel, Backend::kFlashAttn3, true},
    {"flash_attn_3::_flash_attn_backward", Match::kName, Role::kKernelBackward, Backend::kFlashAttn3, true},
    {"xformers_flash::flash_fwd", Match::kName, Role::kKernel, Backend::kXformers, true},
    {"xformers_flash::flash_bwd", Match::kName, Role::kKernelBackward, Backend::kXformers, true},
    {"xformers_flash3::flash_fwd", Match::kName, Role::kKernel, Backend::kXformers, true},
    {"xformers_flash3::flash_bwd", Match::kName, Role::kKernelBackward, Backend::kXformers, true},
    {"mslk_flash::flash_fwd", Match::kName, Role::kKernel, Backend::kXformers, true},
    {"mslk_flash::flash_bwd", Match::kName, Role::kKernelBackward, Backend::kXformers, true},
    {"xformers::efficient_attention_forward_ck", Match::kName, Role::kKernel, Backend::kXformers, true},
    {"vllm::unified_attention", Match::kName, Role::kKernel, Backend::kVllm, true},
    {"vllm::unified_attention_with_output", Match::kName, Role::kKernel, Backend::kVllm, true},
    {"vllm::unified_mla_attention", Match::kName, Role::kKernel, Backend::kVllm, true},
    {"vllm::unified_mla_attention_with_output", Match::kName, Role::kKernel, Backend::kVllm, true},
    {"sageattention::qk_int8_sv_f16_accum_f32_attn", Match::kName, Role::kKernel, Backend::kSage, true},
    {"_flash_attn_forward", Match::kSuffix, Role::kKernel, Backend::kFlashAttn2, true},
    {"_flash_attn_varlen_forward", Match::kSuffix, Role::kKernel, Backend::kFlashAttn2, true},
    {"_flash_attn_backward", Match::kSuffix, Role::kKernelBackward, Backend::kFlashAttn2, true},
    {"_flash_attn_varlen_backward", Match::kSuffix, Role::kKernelBackward, Backend::kFlashAttn2, true},
    // Steps of a hand-written attention.
    {"aten::softmax", Match::kName, Role::kSoftmax, Backend::kUnknown, false},
    {"aten::_softmax", Match::kName, Role::kSoftmax, Backend::kUnknown, false},
    {"aten::_safe_softmax", Match::kName, Role::kSoftmax, Backend::kUnknown, false},
    {"aten::special_softmax", Match::kName, Role::kSoftmax, Backend::kUnknown, false},
    {"aten::_masked_softmax", Match::kName, Role::kSoftmax, Backend::kUnknown, false},
    {"aten::exp", Match::kName, Role::kSoftmax, Backend::kUnknown, false},
    {"aten::exp_", Match::kName, Role::kSoftmax, Backend::kUnknown, false},
    {"aten::bmm", Match::kName, Role::kProduct, Backend::kUnknown, false},
    {"aten::baddbmm", Match::kName, Role::kProduct, Backend::kUnknown, false},
    {"aten::baddbmm_", Match::kName, Role::kProduct, Backend::kUnknown, false},
    {"aten::normal_", Match::kName, Role::kDraw, Backend::kUnknown, false},
    {"aten::uniform_", Match::kName, Role::kDraw, Backend::kUnknown, false},
    {"aten::arange", Match::kName, Role::kRange, Backend::kUnknown, false},
    {"aten::sum", Match::kName, Role::kSum, Backend::kUnknown, false},
    {"aten::where", Match::kName, Role::kWhere, Backend::kUnknown, false},
    // What mixes scores with parameters or across rows: a router's or classifier's logits come out of these.
    {"aten::mm", Match::kName, Role::kBarrier, Backend::kUnknown, false},
    {"aten::addmm", Match::kName, Role::kBarrier, Backend::kUnknown, false},
    {"aten::linear", Match::kName, Role::kBarrier, Backend::kUnknown, false},
    {"aten::native_layer_norm", Match::kName, Role::kBarrier, Backend::kUnknown, false},
    {"aten::layer_norm", Match::kName, Role::kBarrier, Backend::kUnknown, false},
    {"aten::rms_norm", Match::kName, Role::kBarrier, Backend::kUnknown, false},
    {"aten::convolution", Match::kName, Role::kBarrier, Backend::kUnknown, false},
    {"aten::_convolution", Match::kName, Role::kBarrier, Backend::kUnknown, false},
    {"aten::embedding", Match::kName, Role::kBarrier, Backend::kUnknown, false},
};

// Open addressing by schema address. Written under a lock at registration, read without one: a slot's key is stored last.
constexpr size_t kSlots = 4096;
struct Slot {
  std::atomic<const char*> key{nullptr};
  Operator value;
};
Slot g_slots[kSlots];
std::mutex g_mutex;

// Names that no schema owns.
const Operator kFlex = [] {
  Operator op;
  op.role = Role::kFlexForward;
  op.backend = Backend::kFlexDense;
  op.name = "FlexAttentionAutogradOp";
  op.arguments.q = 0;
  op.arguments.k = 1;
  op.arguments.v = 2;
  return op;
}();
const Operator kRegion = [] {
  Operator op;
  op.role = Role::kCompiledRegion;
  return op;
}();
const Operator kCompiled = [] {
  Operator op;
  op.role = Role::kCompiledFunction;
  return op;
}();

size_t Place(const char* key) noexcept { return (reinterpret_cast<uintptr_t>(key) * 0x9e3779b97f4a7c15u) >> 52; }

const Row* FindRow(const std::string& name) noexcept {
  const size_t colons = name.find("::");
  const char* const suffix = colons == std::string::npos ? name.c_str() : name.c_str() + colons + 2;
  for (const Row& row : kTable) {
    if (strcmp(row.match == Match::kName ? name.c_str() : suffix, row.text) == 0) return &row;
  }
  return nullptr;
}

int8_t ArgumentIndex(const c10::FunctionSchema& schema, std::initializer_list<const char*> names) {
  const auto& arguments = schema.arguments();
  for (const char* const name : names) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i].name() == name) return static_cast<int8_t>(i);
    }
  }
  return -1;
}

Arguments ArgumentsOf(const c10::FunctionSchema& schema) {
  Arguments at;
  at.q = ArgumentIndex(schema, {"query", "q", "self", "input"});
  at.k = ArgumentIndex(schema, {"key", "k", "mat2", "batch2"});
  at.v = ArgumentIndex(schema, {"value", "v"});
  at.mask = ArgumentIndex(schema, {"attn_mask", "attn_bias", "bias", "mask"});
  at.dropout = ArgumentIndex(schema, {"dropout_p", "dropout"});
  at.causal = ArgumentIndex(schema, {"is_causal", "causal"});
  at.scale = ArgumentIndex(schema, {"scale", "softmax_scale"});
  at.gqa = ArgumentIndex(schema, {"enable_gqa"});
  at.heads = ArgumentIndex(schema, {"num_head", "num_heads"});
  if (schema.name() == "aten::baddbmm" || schema.name() == "aten::baddbmm_") at.q = ArgumentIndex(schema, {"batch1"});
  return at;
}

class Listener final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle& handle) override {
    try {
      const c10::FunctionSchema& schema = handle.schema();
      const Row* const row = FindRow(schema.name());
      if (row == nullptr) return;
      const std::lock_guard<std::mutex> lock(g_mutex);
      const char* const key = schema.name().c_str();
      for (size_t i = 0; i < kSlots; ++i) {
        Slot& slot = g_slots[(Place(key) + i) % kSlots];
        const char* const taken = slot.key.load(std::memory_order_relaxed);
        if (taken == key) return;
        if (taken != nullptr) continue;
        slot.value.role = row->role;
        slot.value.backend = row->backend;
        slot.value.rows_first = row->rows_first;
        slot.value.arguments = ArgumentsOf(schema);
        slot.value.name = strdup(schema.name().c_str());
        slot.key.store(key, std::memory_order_release);
        return;
      }
    } catch (...) {  // an operator that we cannot read is one that we do not know
    }
  }
  // The schema's address may be used again by another operator; a slot whose name differs is told apart in FindOperator's
  // callers only by luck, so the slot is emptied: its role becomes "nothing".
  void onOperatorDeregistered(const c10::OperatorHandle& handle) override {
    try {
      const char* const key = handle.schema().name().c_str();
      const std::lock_guard<std::mutex> lock(g_mutex);
      for (size_t i = 0; i < kSlots; ++i) {
        Slot& slot = g_slots[(Place(key) + i) % kSlots];
        const char* const taken = slot.key.load(std::memory_order_relaxed);
        if (taken == nullptr) return;
        if (taken == key) slot.value.role = Role::kNothing;
      }
    } catch (...) {
    }
  }
};

bool StartsWith(const char* text, const char* prefix) noexcept { return strncmp(text, prefix, strlen(prefix)) == 0; }

}  // namespace

void WatchOperators() noexcept {
  // Never removed: removal would race with registration in other threads.
  static auto* const keep =
      new c10::RegistrationHandleRAII(c10::Dispatcher::singleton().addRegistrationListener(std::make_unique<Listener>()));
  (void)keep;
}

const Operator* FindOperator(const char* name) noexcept {
  for (size_t i = 0; i < kSlots; ++i) {
    const Slot& slot = g_slots[(Place(name) + i) % kSlots];
    const char* const key = slot.key.load(std::memory_order_acquire);
    if (key == name) return slot.value.role != Role::kNothing ? &slot.value : nullptr;
    if (key == nullptr) break;
  }
  switch (name[0]) {  // every std::string has at least 16 readable bytes, and these compare stops at the first difference
    case 'F':
      return strcmp(name, kFlex.name) == 0 ? &kFlex : nullptr;
    case 'T':
      return StartsWith(name, "Torch-Compiled Region") ? &kRegion : nullptr;
    case 'C':
      return strcmp(name, "CompiledFunction") == 0 ? &kCompiled : nullptr;
    default:
      return nullptr;
  }
}

Backend BackendOfNode(const char* name, bool* softmax) noexcept {
  struct Node {
    const char* prefix;
    Backend backend;
  };
  static constexpr Node kNodes[] = {
      {"ScaledDotProductFlashAttention", Backend::kFlash},
      {"ScaledDotProductEfficientAttention", Backend::kEfficient},
      {"ScaledDotProductCudnnAttention", Backend::kCudnn},
      {"ScaledDotProductFusedAttentionOverrideable", Backend::kOverrideable},
      {"FlashAttentionBackward", Backend::kFlash},
      {"EfficientAttentionBackward", Backend::kEfficient},
      {"CudnnAttentionBackward", Backend::kCudnn},
      {"FlexAttentionAutogradOpBackward", Backend::kFlexDense},
      {"FlashAttn", Backend::kFlashAttn2},
      {"FusedAttnFunc", Backend::kTransformerEngine},
      {"_fMHABackward", Backend::kXformers},
  };
  *softmax = StartsWith(name, "SoftmaxBackward") || StartsWith(name, "SafeSoftmaxBackward") ||
             StartsWith(name, "ExpBackward") || StartsWith(name, "MaskedSoftmaxBackward");
  for (const Node& node : kNodes) {
    if (StartsWith(name, node.prefix)) return node.backend;
  }
  return Backend::kUnknown;
}

}  // namespace attntrace
