// A run as an agent would store it, for the tests of decoding and of the text: a small trainer, one call site fused through
// Transformers, one dense in the user's own code with gates, one hand-written layer in a library of another folder.
#pragma once

#include "report/run_facts.h"
#include "tests/unit/report/spool_builder.h"

namespace attntrace::testing {

inline RunFacts SampleRun() {
  RunFacts run;
  run.command = {"python", "train.py"};
  run.host = "node1";
  run.directory = "/home/ada/project";
  run.start_unix_ns = 1'000'000'000;
  run.duration_ns = 5'000'000'000;
  run.ended = "exit";
  return run;
}

// Frames that every path of the sample ends in.
struct SampleFrames {
  explicit SampleFrames(SpoolBuilder& b)
      : main(b.Python("/home/ada/project/train.py", 40, "<module>", "__main__")),
        step(b.Python("/home/ada/project/train.py", 88, "step", "__main__")),
        call_impl(b.Python("/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", 1790, "Module._call_impl",
                           "torch.nn.modules.module")),
        layer(b.Python("/venv/lib/python3.12/site-packages/transformers/models/llama/modeling_llama.py", 320,
                       "LlamaDecoderLayer.forward", "transformers.models.llama.modeling_llama")),
        attention(b.Python("/venv/lib/python3.12/site-packages/transformers/models/llama/modeling_llama.py", 252,
                           "LlamaAttention.forward", "transformers.models.llama.modeling_llama")),
        sdpa(b.Python("/venv/lib/python3.12/site-packages/transformers/integrations/sdpa_attention.py", 96,
                      "sdpa_attention_forward", "transformers.integrations.sdpa_attention")),
        own(b.Python("/home/ada/project/model.py", 120, "Head.forward", "model")),
        vendor(b.Python("/srv/libs/vendor/attention.py", 41, "attention_forward", "vendor.attention")) {}
  uint32_t main, step, call_impl, layer, attention, sdpa, own, vendor;
};

inline void FillSample(SpoolBuilder& b) {
  b.Environment("torch", "2.11.0+cpu");
  b.Environment("transformers", "5.17.0");
  b.Environment("python", "3.12.3");
  b.Environment("attention.sdpa", "transformers.integrations.sdpa_attention:sdpa_attention_forward");
  b.Environment("package.xformers", "0.0.31");
  b.Environment("threads.intraop", "2");
  const SampleFrames f(b);
  const uint32_t thread = b.Thread(4711, "python");

  const uint32_t llama = b.Module("LlamaAttention", "transformers.models.llama.modeling_llama");
  spool::VariantDef fused = b.Sdpa(b.Path({f.sdpa, f.attention, f.call_impl, f.layer, f.call_impl, f.step, f.main}),
                                   Backend::kFlash, PathKind::kFused);
  fused.module = llama;
  fused.thread = thread;
  fused.flags = spool::kCausal | spool::kGradMode;
  const uint32_t slot = b.Variant(fused, 336, 28 << 20);
  for (int layer = 27; layer >= 0; --layer) b.Layer(slot, layer);
  b.Backward(slot, fused, 336, 40 << 20);

  spool::VariantDef math = b.Sdpa(b.Path({f.own, f.call_impl, f.step, f.main}), Backend::kMath, PathKind::kDense);
  math.module = b.Module("Head", "model");
  math.flags = spool::kGradMode;
  math.dropout_p = 0.1;
  const uint32_t dense = b.Variant(math, 12, 1160 << 20);
  b.Gate(dense, Backend::kEfficient, 2, "Not a CUDA tensor.", true);
  b.Gate(dense, Backend::kFlash, 1, "Both fused kernels do not support non-zero dropout.");
  b.Gate(dense, Backend::kEfficient, 1, "Both fused kernels do not support non-zero dropout.");
  b.Counters(dense).score_bytes = 512 << 10;
  b.Backward(dense, math, 12, 3368ll << 20);

  spool::VariantDef eager =
      b.Sdpa(b.Path({f.vendor, f.attention, f.call_impl, f.layer, f.step, f.main}), Backend::kEager, PathKind::kDense);
  eager.op = b.String("hand-written");
  eager.module = llama;
  b.Layer(b.Variant(eager, 4, 64 << 20), 3);

  b.Count(Counter::kCpuPeakBytes, 4ull << 30);
  b.Count(Counter::kCpuLiveBytes, 1 << 20);
  b.Count(Counter::kCpuAllocatedBytes, 9ull << 30);
  b.Count(Counter::kCpuAttributedBytes, 5ull << 30);
  for (uint64_t i = 1; i <= 3; ++i) b.Event(i, slot, 1000 * i, static_cast<int32_t>(i));
}

}  // namespace attntrace::testing
