#include "tracer/spool/kernel_names.h"

#include <iterator>

namespace attntrace {
namespace {

// A kernel whose name holds `first` and, after it, `second`. The first row that fits wins: the narrow stand before the wide.
struct Row {
  std::string_view first, second;
  KernelKind kind;
  Backend backend;
  Phase phase;
  const char* library;
};

using K = KernelKind;
using B = Backend;
constexpr Phase kF = Phase::kForward, kB = Phase::kBackward;

constexpr Row kRows[] = {
    // Compiled flex_attention: Inductor's Triton templates. Other fused operators stand between the two words.
    {"triton_tem_fused", "flex_attention_backward", K::kFused, B::kFlexTriton, kB, "flex_attention (Inductor)"},
    {"triton_tem_fused", "flex_attention", K::kFused, B::kFlexTriton, kF, "flex_attention (Inductor)"},
    {"triton_tem_fused", "flex_decoding", K::kFused, B::kFlexTriton, kF, "flex_attention (Inductor)"},
    {"triton_flex_attention_backward", "", K::kFused, B::kFlexTriton, kB, "flex_attention (Inductor)"},
    {"triton_flex_attention", "", K::kFused, B::kFlexTriton, kF, "flex_attention (Inductor)"},
    // PyTorch's own FlashAttention-2, in a namespace of its own; the pip package's has none of these words before it.
    {"pytorch_flash", "splitkv_combine", K::kPart, B::kFlash, kF, "PyTorch flash"},
    {"pytorch_flash", "flash_fwd", K::kFused, B::kFlash, kF, "PyTorch flash"},
    {"pytorch_flash", "flash_bwd_dq_dk_dv", K::kFused, B::kFlash, kB, "PyTorch flash"},
    {"pytorch_flash", "flash_bwd", K::kPart, B::kFlash, kB, "PyTorch flash"},
    // cutlass, shared by PyTorch and xformers.
    {"fmha_cutlassF", "", K::kFused, B::kEfficient, kF, "memory-efficient (cutlass)"},
    {"fmha_cutlassB", "", K::kFused, B::kEfficient, kB, "memory-efficient (cutlass)"},
    // cuDNN, shared by PyTorch, TransformerEngine and JAX.
    {"sdpa", "flash_fprop", K::kFused, B::kCudnn, kF, "cuDNN"},
    {"sdpa", "flash_bprop", K::kFused, B::kCudnn, kB, "cuDNN"},
    {"cudnn", "compute_dot_do_o", K::kPart, B::kCudnn, kB, "cuDNN"},
    {"cudnn", "convert_dq_to_16bits", K::kPart, B::kCudnn, kB, "cuDNN"},
    {"cudnn", "fmha_reduce_head", K::kPart, B::kCudnn, kB, "cuDNN"},
    // FlashAttention-4 (CuTe).
    {"flash_attncuteflash_fwd", "combine", K::kPart, B::kFlashAttn4, kF, "flash-attn 4"},
    {"flash_attncuteflash_fwd", "", K::kFused, B::kFlashAttn4, kF, "flash-attn 4"},
    {"flash_attncuteflash_bwd_p", "", K::kPart, B::kFlashAttn4, kB, "flash-attn 4"},
    {"flash_attncuteflash_bwd", "", K::kFused, B::kFlashAttn4, kB, "flash-attn 4"},
    // FlashAttention-3.
    {"FlashAttnFwdCombine", "", K::kPart, B::kFlashAttn3, kF, "flash-attn 3"},
    {"FlashAttnFwdSm", "", K::kFused, B::kFlashAttn3, kF, "flash-attn 3"},
    {"FlashAttnBwdSm", "", K::kFused, B::kFlashAttn3, kB, "flash-attn 3"},
    {"FlashAttnBwdP", "", K::kPart, B::kFlashAttn3, kB, "flash-attn 3"},
    {"prepare_varlen_num_blocks_kernel", "", K::kPart, B::kFlashAttn3, kF, "flash-attn 3"},
    // FlashMLA, whose names are FlashAttention-2's with a word more.
    {"flash_fwd_", "mla_combine", K::kPart, B::kCustom, kF, "FlashMLA"},
    {"flash_fwd_", "mla_kernel", K::kFused, B::kCustom, kF, "FlashMLA"},
    // FlashAttention-2 as a package, also inside TransformerEngine, vLLM and xformers.
    {"flash_fwd_splitkv_combine", "", K::kPart, B::kFlashAttn2, kF, "flash-attn 2"},
    {"flash_fwd", "_kernel", K::kFused, B::kFlashAttn2, kF, "flash-attn 2"},
    {"flash_bwd_dq_dk_dv", "", K::kFused, B::kFlashAttn2, kB, "flash-attn 2"},
    {"flash_bwd_", "_kernel", K::kPart, B::kFlashAttn2, kB, "flash-attn 2"},
    // SageAttention.
    {"qk_int_sv_f", "attn_kernel", K::kFused, B::kSage, kF, "SageAttention"},
    {"qk_int8_sv_f", "attn_kernel", K::kFused, B::kSage, kF, "SageAttention"},
    {"QuantInt8Kernel", "", K::kPart, B::kSage, kF, "SageAttention"},
    // FlashInfer.
    {"PrefillWith", "KVCacheKernel", K::kFused, B::kFlashInfer, kF, "FlashInfer"},
    {"DecodeWith", "KVCacheKernel", K::kFused, B::kFlashInfer, kF, "FlashInfer"},
    {"BatchMLAPage", "Kernel", K::kFused, B::kFlashInfer, kF, "FlashInfer"},
    {"MergeState", "Kernel", K::kPart, B::kFlashInfer, kF, "FlashInfer"},
    {"fmhaSm", "Kernel", K::kFused, B::kFlashInfer, kF, "TensorRT-LLM (FlashInfer)"},
    // vLLM's own, and the Triton kernels for decoding that it shares with SGLang.
    {"paged_attention_v2_reduce_kernel", "", K::kPart, B::kVllm, kF, "vLLM"},
    {"paged_attention_v", "_kernel", K::kFused, B::kVllm, kF, "vLLM"},
    {"kernel_unified_attention", "", K::kFused, B::kVllm, kF, "vLLM"},
    {"reduce_segments", "", K::kPart, B::kVllm, kF, "vLLM"},
    {"_fwd_grouped_kernel_stage1", "", K::kFused, B::kCustom, kF, "Triton decoding (SGLang, vLLM)"},
    {"_fwd_kernel_stage1", "", K::kFused, B::kCustom, kF, "Triton decoding (SGLang, vLLM)"},
    {"_fwd_kernel_stage2", "", K::kPart, B::kCustom, kF, "Triton decoding (SGLang, vLLM)"},
    // xformers' Triton kernels; its others are cutlass and FlashAttention-2.
    {"_fwd_kernel_splitK", "", K::kFused, B::kXformers, kF, "xformers split-K"},
    {"_splitK_reduce", "", K::kPart, B::kXformers, kF, "xformers split-K"},
    // flash-linear-attention: its softmax attention, then what is linear.
    {"parallel_attn_fwd_kernel", "", K::kFused, B::kCustom, kF, "fla"},
    {"parallel_attn_bwd_kernel_preprocess", "", K::kPart, B::kCustom, kB, "fla"},
    {"parallel_attn_bwd_kernel_dq", "", K::kFused, B::kCustom, kB, "fla"},
    {"parallel_attn_bwd_kernel", "", K::kPart, B::kCustom, kB, "fla"},
    {"parallel_nsa_fwd", "", K::kFused, B::kCustom, kF, "fla NSA"},
    {"parallel_nsa_bwd_kernel_dq", "", K::kFused, B::kCustom, kB, "fla NSA"},
    {"parallel_nsa_bwd", "", K::kPart, B::kCustom, kB, "fla NSA"},
    {"chunk_fwd_kernel_", "", K::kLinear, B::kUnknown, kF, "fla linear attention"},
    {"chunk_bwd_kernel_", "", K::kLinear, B::kUnknown, kB, "fla linear attention"},
    {"chunk_gated_delta_rule_", "", K::kLinear, B::kUnknown, kF, "fla linear attention"},
    {"chunk_gla_", "", K::kLinear, B::kUnknown, kF, "fla linear attention"},
    {"fused_recurrent_", "", K::kLinear, B::kUnknown, kF, "fla linear attention"},
    {"prepare_wy_repr_", "", K::kLinear, B::kUnknown, kF, "fla linear attention"},
    // A Triton tutorial's attention, and SageAttention's Triton kernels.
    {"_attn_fwd", "", K::kFused, B::kCustom, kF, "a Triton attention"},
    {"_attn_bwd_preprocess", "", K::kPart, B::kCustom, kB, "a Triton attention"},
    {"_attn_bwd", "", K::kFused, B::kCustom, kB, "a Triton attention"},
    // Softmax over stored scores.
    {"scaled_", "softmax_warp_forward", K::kDense, B::kEager, kF, "Megatron softmax"},
    {"scaled_", "softmax_warp_backward", K::kDense, B::kEager, kB, "Megatron softmax"},
    {"softmax_warp_forward", "", K::kDense, B::kEager, kF, "softmax"},
    {"softmax_warp_backward", "", K::kDense, B::kEager, kB, "softmax"},
    {"cunn_SoftMaxForward", "", K::kDense, B::kEager, kF, "softmax"},
    {"cunn_SoftMaxBackward", "", K::kDense, B::kEager, kB, "softmax"},
    {"triton_per_fused", "_softmax_backward_data", K::kDense, B::kEager, kB, "softmax (Inductor)"},
    {"triton_red_fused", "_softmax_backward_data", K::kDense, B::kEager, kB, "softmax (Inductor)"},
    {"triton_per_fused", "_softmax", K::kDense, B::kEager, kF, "softmax (Inductor)"},
    {"triton_red_fused", "_softmax", K::kDense, B::kEager, kF, "softmax (Inductor)"},
    {"_neighborhood_mask_kernel", "", K::kDense, B::kEager, kF, "Liger"},
    {"_fused_neighborhood_attention_", "", K::kDense, B::kEager, kF, "Liger"},
};

}  // namespace

int KernelRows() noexcept { return static_cast<int>(std::size(kRows)); }

int RowOfKernel(std::string_view name) noexcept {
  for (int i = 0; i < KernelRows(); ++i) {
    const Row& row = kRows[i];
    const size_t first = name.find(row.first);
    if (first == std::string_view::npos) continue;
    if (row.second.empty() || name.find(row.second, first + row.first.size()) != std::string_view::npos) return i;
  }
  return -1;
}

KernelFacts FactsOfKernel(std::string_view name) noexcept {
  const int row = RowOfKernel(name);
  return row < 0 ? KernelFacts{} : KernelFacts{kRows[row].kind, kRows[row].backend, kRows[row].phase, kRows[row].library};
}

}  // namespace attntrace
