#include "report/kernel_label.h"

#include "tests/unit/catch.h"

namespace attntrace {
namespace {

TEST_CASE("a kernel's short name") {
  CHECK(ShortKernelName("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128>, false>(int)") ==
        "flash_fwd_kernel");
  CHECK(ShortKernelName("void at::native::(anonymous namespace)::cunn_SoftMaxForwardSmem<4, float>(float*)") ==
        "cunn_SoftMaxForwardSmem");
  CHECK(ShortKernelName("void (anonymous namespace)::softmax_warp_forward<float, float>(float*)") == "softmax_warp_forward");
  CHECK(ShortKernelName("triton_tem_fused_flex_attention_0") == "triton_tem_fused_flex_attention_0");
  CHECK(ShortKernelName("fmha_cutlassF_f32_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)") ==
        "fmha_cutlassF_f32_aligned_64x64_rf_sm80");
  CHECK(ShortKernelName(
            "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::X<2> > > >(int)") ==
        "FlashAttnFwdSm90");
  CHECK(ShortKernelName(
            "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>(T1::Params)") ==
        "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn...");
  CHECK(ShortKernelName("device_kernel") == "device_kernel");
  CHECK(ShortKernelName("") == "");
  CHECK(ShortKernelName("<") == "<");
}

TEST_CASE("what one call launches") {
  Variant variant;
  CHECK(KernelList(variant) == "");
  for (const auto& [name, launches] : {std::pair{"void f<int>(int)", 1}, {"gemm", 2}, {"void f<long>(long)", 3}}) {
    Kernel* const kernel = variant.add_kernels();
    kernel->set_name(name);
    kernel->set_launches(static_cast<uint32_t>(launches));
  }
  CHECK(KernelList(variant) == "f x4, gemm x2");
}

}  // namespace
}  // namespace attntrace
