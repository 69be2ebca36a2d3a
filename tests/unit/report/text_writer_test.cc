#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/decode.h"
#include "report/writers/layout.h"
#include "report/writers/writers.h"
#include "tests/unit/catch.h"
#include "tests/unit/report/sample.h"

namespace attntrace {
namespace {

using testing::FillSample;
using testing::SampleRun;
using testing::SpoolBuilder;
using testing::TemporaryFolder;

Report Decode(SpoolBuilder& builder) {
  TemporaryFolder folder;
  auto report = DecodeSpools({builder.Write(folder, "a")}, SampleRun());
  REQUIRE(report.ok());
  return *std::move(report);
}

std::string Text(const Report& report, WriterOptions options = {}) {
  if (options.report_path.empty()) options.report_path = "attntrace-train.4711.attn";
  return FindWriter("text")->write(report, options);
}

// ATTNTRACE_UPDATE_GOLDEN=1 writes what came out, for a person to look at in the diff.
void CheckGolden(const std::string& name, const std::string& text) {
  const std::string path = std::string(ATTNTRACE_GOLDEN) + "/" + name;
  if (std::getenv("ATTNTRACE_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  CHECK(text == golden.str());
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Findings as the rules would add them.
Report SampleWithFindings() {
  SpoolBuilder builder;
  FillSample(builder);
  Report report = Decode(builder);
  Finding& math = *report.add_findings();
  math.set_rule("sdpa-math");
  math.set_severity("warning");
  math.set_phase("forward,backward");
  math.set_title("scaled_dot_product_attention ran the math backend");
  math.add_variants(3);
  math.add_variants(4);
  math.set_forward_calls(12);
  math.set_backward_calls(12);
  math.set_forward_peak_bytes(1160 << 20);
  math.set_backward_peak_bytes(3368ll << 20);
  math.set_ran("math: q, k, v (2, 4, 128, 16), float32 on cpu; scores (2, 4, 128, 128), 512 KiB");
  math.set_why(
      "Dropout of 0.1 inside the attention, which no fused kernel of the CPU has, keeps every fused kernel from being chosen.");
  *math.mutable_gates() = report.variants(2).gates();
  Advice& advice = *math.add_advice();
  advice.set_text("leave dropout out of the attention");
  advice.set_code("F.scaled_dot_product_attention(q, k, v, dropout_p=0.0)");
  advice.set_proof("unproven");
  Advice& other = *math.add_advice();
  other.set_text("or run it on CUDA");
  other.set_text("move it to CUDA, where flash takes dropout");
  other.set_proof("proven");
  Evidence& score = *math.add_evidence();
  score.set_name("score bytes");
  score.set_text("512 KiB");

  Finding& eager = *report.add_findings();
  eager.set_rule("eager-attention");
  eager.set_severity("warning");
  eager.set_phase("forward");
  eager.set_title("attention written by hand stored its scores");
  eager.add_variants(5);
  eager.set_forward_calls(4);
  eager.add_layers(3);
  eager.set_forward_peak_bytes(64 << 20);
  return report;
}

TEST_CASE("a run with findings") { CheckGolden("findings.txt", Text(SampleWithFindings())); }

TEST_CASE("what built a finding's modules is shown where its rule says so") {
  Report report = SampleWithFindings();
  const uint32_t path = report.variants(2).call_path();
  const CallPath& frames = report.call_paths(static_cast<int>(path) - 1);
  const Frame& user = report.frames(static_cast<int>(frames.frames(frames.user())));
  report.mutable_variants(4)->mutable_module()->set_built_at(path);
  CHECK_FALSE(Has(Text(report), "  built   "));
  Evidence& built = *report.mutable_findings(1)->add_evidence();
  built.set_name("built");
  built.set_text("somewhere");
  const std::string text = Text(report);
  CHECK(Has(text, absl::StrCat("\n  built   ", user.file().substr(user.file().rfind('/') + 1), ":", user.line(), "  ")));
  CHECK_FALSE(Has(text, "somewhere"));
}

TEST_CASE("what a fused kernel took is less, as much, or more than what ran") {
  struct Case {
    int64_t fused, observed;
    double time;
    const char* says;
  };
  const Case one = GENERATE(Case{64 << 10, 4 << 20, 2.5, "64 KiB (64x less than 4 MiB, 2.5x faster), flash"},
                            Case{64 << 10, 96 << 10, 0.25, "64 KiB (1.5x less than 96 KiB, 4.0x slower), flash"},
                            Case{64 << 10, 66 << 10, 1.04, "64 KiB (as much as 66 KiB, as fast), flash"},
                            Case{66 << 10, 64 << 10, 0, "66 KiB (as much as 64 KiB), flash"},
                            Case{64 << 10, 2 << 10, 0.97, "64 KiB (32x more than 2 KiB, as fast), flash"},
                            Case{64 << 10, 0, 1.5, "64 KiB (against 0 B, 1.5x faster), flash"});
  Report report = SampleWithFindings();
  Finding& finding = *report.mutable_findings(0);
  finding.set_fused_peak_bytes(one.fused);
  finding.set_observed_peak_bytes(one.observed);
  finding.set_peak_ratio(static_cast<double>(one.observed) / static_cast<double>(one.fused));
  finding.set_time_ratio(one.time);
  finding.set_fused_backend("flash");
  const std::string text = Text(report);
  INFO(text);
  CHECK(Has(text, absl::StrCat("same shapes: ", one.says)));
}

TEST_CASE("further advice says `or` once, whoever says it") {
  for (const char* const text : {"run it on CUDA", "or run it on CUDA", "or, run it on CUDA"}) {
    Report report = SampleWithFindings();
    report.mutable_findings(0)->mutable_advice(1)->set_text(text);
    CHECK(Has(Text(report), "\n          or run it on CUDA"));
  }
}

TEST_CASE("the parts of a model are a table, those that differ marked") {
  Report report = SampleWithFindings();
  for (const bool differs : {true, false}) {
    Submodel& part = *report.mutable_findings(0)->add_submodels();
    part.set_name(differs ? "model.vision_tower" : "");
    part.set_config_class(differs ? "CLIPVisionConfig" : "LlamaConfig");
    if (differs) part.set_requested("sdpa");
    part.set_selected(differs ? "eager" : "sdpa");
    part.set_ran(differs ? "eager" : "sdpa (flash)");
    part.set_differs(differs);
  }
  CHECK(Has(Text(report),
            "  parts   sub-model                              requested  config  ran\n"
            "          model.vision_tower (CLIPVisionConfig)  sdpa       eager   eager !\n"
            "          LlamaConfig                            -          sdpa    sdpa (flash)\n"));
}

TEST_CASE("a fused run is short") {
  SpoolBuilder builder;
  builder.Environment("torch", "2.11.0+cpu");
  const testing::SampleFrames f(builder);
  auto def = builder.Sdpa(builder.Path({f.own, f.call_impl, f.step, f.main}), Backend::kFlash, PathKind::kFused);
  const auto slot = builder.Variant(def, 10, 28 << 20);
  builder.Backward(slot, def, 10, 40 << 20);
  CheckGolden("fused.txt", Text(Decode(builder)));
}

TEST_CASE("recompute, masks, two backends at one place, several processes, blind spots") {
  TemporaryFolder folder;
  std::vector<std::string> paths;
  for (int pid : {11, 12, 13, 14}) {
    SpoolBuilder builder(pid);
    builder.header().start_realtime_ns = static_cast<uint64_t>(pid) * 1'000'000'000;
    const testing::SampleFrames f(builder);
    if (pid < 13) {
      builder.header().rank = pid - 11;
      builder.Count(Counter::kCpuPeakBytes, 300 << 20);
      auto def = builder.Sdpa(builder.Path({f.own, f.step, f.main}), Backend::kFlash, PathKind::kFused);
      const auto forward = builder.Variant(def, 4, 1 << 20);
      def.path = builder.Path({f.own, f.main});  // below the user's backward()
      def.phase = Phase::kRecompute;
      const auto again = builder.Variant(def, 4, 1 << 20);
      builder.Backward(again, def, 4, 2 << 20);
      def.phase = Phase::kForward;
      def.path = builder.Path({f.own, f.step, f.main});
      def.backend = Backend::kMath;
      def.path_kind = PathKind::kDense;
      builder.Variant(def, 1, 9 << 20);
      auto masked =
          builder.Sdpa(builder.Path({f.sdpa, f.attention, f.step, f.main}), Backend::kEfficient, PathKind::kQuadratic);
      masked.module = builder.Module("LlamaAttention", "transformers.models.llama.modeling_llama");
      builder.Variant(masked, 2, 3 << 20);
      static_cast<void>(forward);
    }
    if (pid == 12) {
      builder.header().state = spool::State::kActive;
      builder.Count(Counter::kOpenCalls, 1);
    }
    if (pid != 14)
      builder.Note("declined", "a collector switched itself off after an error of its own that is told at some length here");
    paths.push_back(builder.Write(folder, std::to_string(pid)));
  }
  RunFacts run = SampleRun();
  run.ended = "signal";
  run.signal = 9;
  run.untraced.push_back({99, "no agent for PyTorch 2.3.1"});
  auto report = DecodeSpools(paths, run);
  REQUIRE(report.ok());
  CheckGolden("processes.txt", Text(*report));
}

void AddKernel(Variant* variant, const std::string& name, uint32_t launches) {
  Kernel* const kernel = variant->add_kernels();
  kernel->set_name(name);
  kernel->set_launches(launches);
}

TEST_CASE("kernels, time and memory of a device") {
  SpoolBuilder builder;
  const testing::SampleFrames f(builder);
  auto def = builder.Sdpa(builder.Path({f.own, f.step, f.main}), Backend::kFlash, PathKind::kFused);
  const auto slot = builder.Variant(def, 10, 28 << 20);
  builder.Backward(slot, def, 10, 40 << 20);
  def.backend = Backend::kFlexTriton;
  def.q = def.k = def.v = {};
  builder.Variant(def, 4);
  Report report = Decode(builder);
  CHECK_FALSE(Has(Text(report), "kernels "));
  AddKernel(report.mutable_variants(0), "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Traits<64> >(int)", 1);
  AddKernel(report.mutable_variants(1), "void pytorch_flash::flash_bwd_dot_do_o_kernel<true>(int)", 1);
  AddKernel(report.mutable_variants(1), "gemm", 2);
  report.mutable_variants(1)->set_device_ns(2'500'000);
  report.mutable_variants(1)->set_timed_launches(30);
  DeviceMemory& memory = *report.mutable_processes(0)->add_devices();
  memory.set_device("cuda:0");
  memory.set_peak_bytes(600 << 20);
  memory.set_reserved_bytes(640 << 20);
  memory.set_other_bytes(1 << 30);
  memory.set_device_bytes(int64_t{140} << 30);
  memory.set_cupti_bytes(6 << 20);
  CheckGolden("device.txt", Text(report));
}

TEST_CASE("nothing traced, and no attention") {
  RunFacts run = SampleRun();
  run.untraced.push_back({99, "no agent for PyTorch 2.3.1"});
  const auto untraced = DecodeSpools({}, run);
  REQUIRE(untraced.ok());
  const std::string text = Text(*untraced);
  CHECK(Has(text, "attntrace  nothing was traced\n"));
  CHECK(Has(text, "not seen: untraced: process 99 was not traced: no agent for PyTorch 2.3.1\n"));
  CHECK(Has(text, "SUMMARY status=untraced "));

  SpoolBuilder builder;
  CHECK(Has(Text(Decode(builder)), "attntrace  no attention ran in 1 process with PyTorch\n"));
}

TEST_CASE("no line is wider than asked for, at any width") {
  const Report report = SampleWithFindings();
  for (int width : {80, 100, 140}) {
    WriterOptions options;
    options.width = width;
    for (absl::string_view line : absl::StrSplit(Text(report, options), '\n')) {
      INFO(std::string(line));
      // Kept whole: the line for scripts, and code to be copied.
      if (line.substr(0, 7) == "SUMMARY" || line.substr(0, 12) == "            ") continue;
      CHECK(DisplayWidth(line) <= width);
    }
  }
}

TEST_CASE("colour only where asked for, and it changes no column") {
  const Report report = SampleWithFindings();
  const std::string plain = Text(report);
  CHECK_FALSE(Has(plain, "\x1B"));
  WriterOptions options;
  options.color = true;
  std::string colored = Text(report, options);
  CHECK(Has(colored, "\x1B[1;33mwarning\x1B[0m"));
  for (size_t at; (at = colored.find('\x1B')) != std::string::npos;) colored.erase(at, colored.find('m', at) + 1 - at);
  CHECK(colored == plain);
}

TEST_CASE("a source line is shown where the file is still the one that ran") {
  TemporaryFolder folder;
  const std::string script = folder.path() + "/train.py";
  std::ofstream(script) << "import torch\n\tloss = target(batch).loss   \n";
  SpoolBuilder builder;
  const uint32_t frame = builder.Python(script, 2, "<module>", "__main__");
  builder.Variant(builder.Sdpa(builder.Path({frame}), Backend::kMath, PathKind::kDense), 1);
  Report report = Decode(builder);
  Finding& finding = *report.add_findings();
  finding.set_rule("sdpa-math");
  finding.add_variants(1);
  CHECK_FALSE(Has(Text(report), "target(batch)"));  // written long after the run
  report.mutable_run()->set_start_unix_ns(4'000'000'000'000'000'000);
  CHECK(Has(Text(report), "  loss = target(batch).loss\n"));
}

TEST_CASE("two call sites with one label are told apart by the user's line") {
  SpoolBuilder builder;
  const testing::SampleFrames f(builder);
  const uint32_t other = builder.Python("/home/ada/project/eval.py", 7, "evaluate", "eval");
  for (uint32_t user : {f.step, other}) {
    auto def = builder.Sdpa(builder.Path({f.sdpa, f.attention, user, f.main}), Backend::kFlash, PathKind::kFused);
    def.module = builder.Module("LlamaAttention", "transformers.models.llama.modeling_llama");
    builder.Variant(def, 1);
  }
  const std::string text = Text(Decode(builder));
  CHECK(Has(text, "  train.py:88 > modeling_llama.py:252 LlamaAttention"));
  CHECK(Has(text, "  eval.py:7 > modeling_llama.py:252 LlamaAttention"));
}

TEST_CASE("a name cannot write to the terminal") {
  SpoolBuilder builder;
  const uint32_t frame = builder.Python("/srv/\x1B[2J.py", 1, "f\rg", "__main__");
  builder.Variant(builder.Sdpa(builder.Path({frame}), Backend::kMath, PathKind::kDense), 1);
  builder.Note("x\x1B", "y\x07");
  CHECK_FALSE(Has(Text(Decode(builder)), "\x1B"));
}

}  // namespace
}  // namespace attntrace
