// Names as profilers show them and sources spell them, most template arguments left out: at least one for every row of the
// table.
#include "tracer/spool/kernel_names.h"

#include <cxxabi.h>

#include <cstdlib>
#include <set>
#include <string>

#include "tests/unit/catch.h"

namespace attntrace {
namespace {

struct Known {
  const char* name;
  KernelKind kind;
  Backend backend;
  Phase phase;
};

using K = KernelKind;
using B = Backend;
constexpr Phase kF = Phase::kForward, kB = Phase::kBackward;

constexpr Known kKnown[] = {
    // Inductor: the origins of what was fused into the template come before or after its own.
    {"triton_tem_fused_flex_attention_0", K::kFused, B::kFlexTriton, kF},
    {"triton_tem_fused__to_copy_flex_attention_ones_slice_sort_sum_transpose_zeros_7", K::kFused, B::kFlexTriton, kF},
    {"triton_tem_fused_flex_decoding_1", K::kFused, B::kFlexTriton, kF},
    {"triton_tem_fused_flex_attention_backward_transpose_view_3", K::kFused, B::kFlexTriton, kB},
    {"triton_flex_attention_65dbdfce", K::kFused, B::kFlexTriton, kF},
    {"triton_flex_attention_backward_7", K::kFused, B::kFlexTriton, kB},
    // PyTorch's FlashAttention-2: SDPA, varlen_attn, nested tensors.
    {"_ZN13pytorch_flash16flash_fwd_kernelINS_23Flash_fwd_kernel_traitsILi64ELi128ELi128ELi4ELb0ELb0EN7cutlass6half_tENS_"
     "19Flash_"
     "kernel_traitsILi64ELi128ELi128ELi4ES3_EEEELb0ELb1ELb0ELb0ELb1ELb1ELb0EEEvNS_16Flash_fwd_paramsE",
     K::kFused, B::kFlash, kF},
    {"void pytorch_flash::flash_fwd_splitkv_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 64, 256, 4, false, false, "
     "cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<64, 64, 256, 4, cutlass::bfloat16_t> >, false, false, false, "
     "true, true, "
     "true, false>(pytorch_flash::Flash_fwd_params)",
     K::kFused, B::kFlash, kF},
    {"void pytorch_flash::flash_fwd_splitkv_combine_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 64, 256, 4>, 8, 3, "
     "true>(pytorch_flash::Flash_fwd_params)",
     K::kPart, B::kFlash, kF},
    {"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<pytorch_flash::Flash_bwd_kernel_traits<64, 128, 128, 8, "
     "4, 4, 4, "
     "false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_bwd_params)",
     K::kFused, B::kFlash, kB},
    {"void pytorch_flash::flash_bwd_dot_do_o_kernel<true, pytorch_flash::Flash_bwd_kernel_traits<64, 128, 128, 8, 4, 4, 4> "
     ">(pytorch_flash::Flash_bwd_params)",
     K::kPart, B::kFlash, kB},
    {"void pytorch_flash::flash_bwd_convert_dq_kernel<pytorch_flash::Flash_bwd_kernel_traits<64, 128, 128, 8, 4, 4, 4> "
     ">(pytorch_flash::Flash_bwd_params, int)",
     K::kPart, B::kFlash, kB},
    // cutlass: PyTorch's memory-efficient, xformers.
    {"fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<cutlass::bfloat16_t, "
     "cutlass::arch::Sm80, true, "
     "64, 64, 64, true, true>::Params)",
     K::kFused, B::kEfficient, kF},
    {"fmha_cutlassF_f32_notaligned_32x128_gmem_sm75", K::kFused, B::kEfficient, kF},
    {"fmha_cutlassB_bf16_aligned_64x64_k64_seqaligned_sm80(PyTorchMemEffAttention::AttentionBackwardKernel<cutlass::arch::Sm80,"
     " "
     "cutlass::bfloat16_t, true, false, true, 64, 64, 64, true>::Params)",
     K::kFused, B::kEfficient, kB},
    {"fmha_cutlassB_bf16_aligned_128x64_k65536_sm80", K::kFused, B::kEfficient, kB},
    // cuDNN: PyTorch, TransformerEngine.
    {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_cga1x1x1_kernel0_0", K::kFused,
     B::kCudnn, kF},
    {"cudnn_generated_oss_sdpa_sm100_flash_fprop_f16_knob_7_128x128x64_4x1x1_cga1x1x1_kernel0_0", K::kFused, B::kCudnn, kF},
    {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_26_64x64x128_1x4x1_cga1x1x1_kernel0_0", K::kFused,
     B::kCudnn, kB},
    {"void cudnn::fusion::compute_dot_do_o_specialized<true, 128>(cudnn::fusion::Params)", K::kPart, B::kCudnn, kB},
    {"_ZN5cudnn6fusion20convert_dq_to_16bitsILb1EEEvNS0_6ParamsE", K::kPart, B::kCudnn, kB},
    {"void cudnn::fusion::fmha_reduce_head<true, 128>(cudnn::fusion::Params)", K::kPart, B::kCudnn, kB},
    // FlashAttention-4, the package and in the place of Inductor's templates (BACKEND="FLASH").
    {"kernel_cutlass_kernel_flash_attncuteflash_fwd_sm90FlashAttentionForwardSm90_object_at__tensor0000o2", K::kFused,
     B::kFlashAttn4, kF},
    {"kernel_cutlass_kernel_flash_attncuteflash_fwd_combineFlashAttentionForwardCombine_object_at__tensor000", K::kPart,
     B::kFlashAttn4, kF},
    {"kernel_cutlass_kernel_flash_attncuteflash_bwd_sm90FlashAttentionBackwardSm90_object_at__tensor0000o1", K::kFused,
     B::kFlashAttn4, kB},
    {"kernel_cutlass_kernel_flash_attncuteflash_bwd_preprocessFlashAttentionBackwardPreprocess_object_at_", K::kPart,
     B::kFlashAttn4, kB},
    {"kernel_cutlass_kernel_flash_attncuteflash_bwd_postprocessFlashAttentionBackwardPostprocess_object_at_", K::kPart,
     B::kFlashAttn4, kB},
    // FlashAttention-3: the package, vLLM, SGLang.
    {"_ZN7cutlass13device_kernelIN5flash20enable_sm90_or_laterINS1_16FlashAttnFwdSm90INS1_"
     "25CollectiveMainloopFwdSm90ILi2EN4cute5tupleIJ"
     "NS5_1CILi2EEENS7_ILi1EEES9_EEE",
     K::kFused, B::kFlashAttn3, kF},
    {"void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<8>, cute::C<128> >, 5, 256, 1, false, true, "
     "cutlass::bfloat16_t, float, cutlass::arch::Sm90> >(flash::FlashAttnFwdCombine<cute::tuple<cute::C<8>, cute::C<128> > "
     ">::Params)",
     K::kPart, B::kFlashAttn3, kF},
    {"void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnBwdSm90<flash::CollectiveMainloopBwdSm90<2, 2, 2> > > >()",
     K::kFused, B::kFlashAttn3, kB},
    {"void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<cute::C<128>, cute::C<128> >, cutlass::bfloat16_t> "
     ">()",
     K::kPart, B::kFlashAttn3, kB},
    {"void cutlass::device_kernel<flash::FlashAttnBwdPostprocessConvertdQ<cute::tuple<cute::C<128> >, cutlass::bfloat16_t> >()",
     K::kPart, B::kFlashAttn3, kB},
    {"flash::prepare_varlen_num_blocks_kernel(int, int, int, int const*)", K::kPart, B::kFlashAttn3, kF},
    // FlashMLA.
    {"void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8, cutlass::bfloat16_t, 512>, "
     "true>(Flash_fwd_mla_params)",
     K::kFused, B::kCustom, kF},
    {"void flash::flash_fwd_splitkv_mla_combine_kernel<cutlass::bfloat16_t, float, long, 512, 128>(Flash_fwd_mla_params)",
     K::kPart, B::kCustom, kF},
    // FlashAttention-2: the package, TransformerEngine, vLLM, xformers.
    {"_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi128ELi64ELi4ELb0ELb0EN7cutlass10bfloat16_tEEEvNS_16Flash_"
     "fwd_paramsE",
     K::kFused, B::kFlashAttn2, kF},
    {"void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false, false, cutlass::bfloat16_t>, false, "
     "true>(Flash_fwd_params)",
     K::kFused, B::kFlashAttn2, kF},
    {"void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4> >(flash::Flash_fwd_params)", K::kFused,
     B::kFlashAttn2, kF},
    {"flash_fwd_splitkv_combine_kernel", K::kPart, B::kFlashAttn2, kF},
    {"void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2> >(Flash_bwd_params)",
     K::kFused, B::kFlashAttn2, kB},
    {"void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<128, 64, 128, 8, 2, 4, 2> >(Flash_bwd_params)", K::kPart,
     B::kFlashAttn2, kB},
    // SageAttention.
    {"void qk_int_sv_f16_attn_kernel<128, 64, 32, 64, 128, (DataType)1, (QuantGranularity)2>(signed char*, signed char*, "
     "__half*)",
     K::kFused, B::kSage, kF},
    {"void qk_int8_sv_f8_attn_kernel<64, 128, 128, 128, (QuantGranularity)3, float>(CUtensorMap_st)", K::kFused, B::kSage, kF},
    {"void QuantInt8Kernel<128, 64, true, false, __nv_bfloat16>(__nv_bfloat16*, signed char*, float*)", K::kPart, B::kSage, kF},
    // FlashInfer, also below SGLang and vLLM.
    {"void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<(flashinfer::MaskMode)1, (unsigned int)128> "
     ">()",
     K::kFused, B::kFlashInfer, kF},
    {"void flashinfer::PrefillWithKVCacheKernel<flashinfer::CollectiveMainloop<flashinfer::AttentionKernelTraits<false> > >()",
     K::kFused, B::kFlashInfer, kF},
    {"void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u, 4u, 8u, 16u, 8u, 1u>()", K::kFused,
     B::kFlashInfer, kF},
    {"void flashinfer::mla::BatchMLAPagedAttentionKernel<flashinfer::mla::KernelTraits<true, 2> >()", K::kFused, B::kFlashInfer,
     kF},
    {"void flashinfer::PersistentVariableLengthMergeStatesKernel<8u, 16u, 8u, 4u, __nv_bfloat16, __nv_bfloat16, int>()",
     K::kPart, B::kFlashInfer, kF},
    {"fmhaSm100fKernel_QkvBf16OBf16H128PagedKvCausalP64VarSeqQ16Kv128PersistentSwapsAbForGen", K::kFused, B::kFlashInfer, kF},
    // vLLM, SGLang.
    {"void vllm::paged_attention_v1_kernel<unsigned short, unsigned short, 128, 16, 128, (vllm::Fp8KVCacheDataType)0, false>()",
     K::kFused, B::kVllm, kF},
    {"void vllm::paged_attention_v2_reduce_kernel<unsigned short, 128, 128, 512>(unsigned short*, float const*)", K::kPart,
     B::kVllm, kF},
    {"kernel_unified_attention_2d", K::kFused, B::kVllm, kF},
    {"reduce_segments", K::kPart, B::kVllm, kF},
    {"_fwd_grouped_kernel_stage1", K::kFused, B::kCustom, kF},
    {"_fwd_kernel_stage1", K::kFused, B::kCustom, kF},
    {"_fwd_kernel_stage2", K::kPart, B::kCustom, kF},
    {"_fwd_kernel_splitK", K::kFused, B::kXformers, kF},
    {"_splitK_reduce", K::kPart, B::kXformers, kF},
    // flash-linear-attention.
    {"parallel_attn_fwd_kernel", K::kFused, B::kCustom, kF},
    {"parallel_attn_bwd_kernel_preprocess", K::kPart, B::kCustom, kB},
    {"parallel_attn_bwd_kernel_dq", K::kFused, B::kCustom, kB},
    {"parallel_attn_bwd_kernel_dkv", K::kPart, B::kCustom, kB},
    {"parallel_nsa_fwd_kernel", K::kFused, B::kCustom, kF},
    {"parallel_nsa_bwd_kernel_dq", K::kFused, B::kCustom, kB},
    {"parallel_nsa_bwd_kernel_dkv", K::kPart, B::kCustom, kB},
    {"chunk_fwd_kernel_o", K::kLinear, B::kUnknown, kF},
    {"chunk_bwd_kernel_dqkwg", K::kLinear, B::kUnknown, kB},
    {"chunk_gated_delta_rule_fwd_kernel_h_blockdim64", K::kLinear, B::kUnknown, kF},
    {"chunk_gla_fwd_A_kernel_intra_sub_inter", K::kLinear, B::kUnknown, kF},
    {"fused_recurrent_gated_delta_rule_fwd_kernel", K::kLinear, B::kUnknown, kF},
    {"prepare_wy_repr_fwd_kernel_chunk64", K::kLinear, B::kUnknown, kF},
    // A Triton tutorial's, SageAttention's in Triton.
    {"_attn_fwd", K::kFused, B::kCustom, kF},
    {"_attn_bwd_preprocess", K::kPart, B::kCustom, kB},
    {"_attn_bwd", K::kFused, B::kCustom, kB},
    // A softmax over stored scores: math, eager, flex_attention that nothing compiles, Megatron's and TransformerEngine's
    // unfused.
    {"void transformer_engine::scaled_upper_triang_masked_softmax_warp_forward<__nv_bfloat16, __nv_bfloat16, float, 11>()",
     K::kDense, B::kEager, kF},
    {"void scaled_masked_softmax_warp_backward<c10::Half, c10::Half, float, 9>(c10::Half*, c10::Half const*, c10::Half const*)",
     K::kDense, B::kEager, kB},
    {"_ZN43_GLOBAL__N__5dfe2eb9_10_SoftMax_cu_9f978f6320softmax_warp_forwardIN3c108BFloat16ES2_fLi9ELb0ELb0EEEvPT0_PKT_"
     "iiiPKbib",
     K::kDense, B::kEager, kF},
    {"void (anonymous namespace)::softmax_warp_backward<float, float, float, 9, false, false>(float*, float const*, float "
     "const*)",
     K::kDense, B::kEager, kB},
    {"void at::native::(anonymous namespace)::cunn_SoftMaxForwardSmem<4, float, float, float, "
     "at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, long)",
     K::kDense, B::kEager, kF},
    {"void at::native::(anonymous namespace)::cunn_SoftMaxBackward<4, float, float, float, "
     "at::native::(anonymous namespace)::SoftMaxBackwardEpilogue>(float*, float const*, float const*, long)",
     K::kDense, B::kEager, kB},
    {"triton_per_fused__softmax_add_native_dropout_7", K::kDense, B::kEager, kF},
    {"triton_red_fused__softmax_3", K::kDense, B::kEager, kF},
    {"triton_per_fused__softmax_backward_data_13", K::kDense, B::kEager, kB},
    {"triton_red_fused__softmax_backward_data_mul_2", K::kDense, B::kEager, kB},
    {"_neighborhood_mask_kernel", K::kDense, B::kEager, kF},
    {"_fused_neighborhood_attention_qk_kernel", K::kDense, B::kEager, kF},
};

// Nothing that only surrounds attention, or computes something else.
constexpr const char* kOthers[] = {
    "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>(T1::Params)",
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, "
    "unsigned int> >()",
    "void at::native::(anonymous namespace)::cunn_SpatialSoftMaxForward<float, float, float>(float*, float const*)",
    "nll_loss_forward_reduce_cuda_kernel_2d",
    "triton_poi_fused_add_mul_silu_3",
    "triton_red_fused__to_copy_mean_pow_rsqrt_0",
    "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>()",
    "",
};

TEST_CASE("every row of the table reads a real name, and reads it right") {
  std::set<int> rows;
  for (const Known& known : kKnown) {
    INFO(known.name);
    const KernelFacts facts = FactsOfKernel(known.name);
    CHECK(static_cast<int>(facts.kind) == static_cast<int>(known.kind));
    CHECK(std::string(NameOf(facts.backend)) == NameOf(known.backend));
    CHECK(std::string(NameOf(facts.phase)) == NameOf(known.phase));
    CHECK_FALSE(std::string(facts.library).empty());
    rows.insert(RowOfKernel(known.name));
  }
  for (int row = 0; row < KernelRows(); ++row) {
    INFO("row " << row);
    CHECK(rows.count(row) == 1);
  }
}

TEST_CASE("a mangled name and its demangled form are the same kernel") {
  int demangled = 0;
  for (const Known& known : kKnown) {
    int status = 0;
    char* const text = abi::__cxa_demangle(known.name, nullptr, nullptr, &status);
    if (status == 0 && std::string(known.name).substr(0, 2) == "_Z") {
      INFO(text);
      CHECK(RowOfKernel(text) == RowOfKernel(known.name));
      ++demangled;
    }
    free(text);
  }
  CHECK(demangled >= 3);
}

TEST_CASE("what is no attention is none") {
  for (const char* name : kOthers) {
    INFO(name);
    CHECK(static_cast<int>(FactsOfKernel(name).kind) == static_cast<int>(K::kOther));
  }
}

}  // namespace
}  // namespace attntrace
