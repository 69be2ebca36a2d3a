#include "report/decode.h"

#include <google/protobuf/util/message_differencer.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "tests/unit/catch.h"
#include "tests/unit/report/sample.h"

namespace attntrace {
namespace {

using testing::FillSample;
using testing::SampleRun;
using testing::SpoolBuilder;
using testing::TemporaryFolder;

Report Decode(const std::vector<std::string>& paths, const RunFacts& run = SampleRun()) {
  auto report = DecodeSpools(paths, run);
  INFO(report.status().ToString());
  REQUIRE(report.ok());
  return *std::move(report);
}

std::set<std::string> Codes(const Report& report) {
  std::set<std::string> codes;
  for (const BlindSpot& spot : report.blind_spots()) codes.insert(spot.code());
  return codes;
}

const Frame& UserFrame(const Report& report, const Variant& variant) {
  const CallPath& path = report.call_paths(static_cast<int>(variant.call_path()) - 1);
  REQUIRE(path.user() >= 0);
  return report.frames(static_cast<int>(path.frames(path.user())));
}

const Frame& SiteFrame(const Report& report, const Variant& variant) {
  const CallPath& path = report.call_paths(static_cast<int>(variant.call_path()) - 1);
  REQUIRE(path.call_site() >= 0);
  return report.frames(static_cast<int>(path.frames(path.call_site())));
}

TEST_CASE("a spool becomes a report") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  FillSample(builder);
  const Report report = Decode({builder.Write(folder, "a.spool")});

  CHECK(report.format_version() == 1);
  CHECK(absl::StartsWith(report.producer(), "attntrace "));
  CHECK(report.run().command(1) == "train.py");
  CHECK(report.environment().torch() == "2.11.0+cpu");
  CHECK(report.environment().transformers() == "5.17.0");
  CHECK(report.environment().registered_attention(0).name() == "sdpa");
  CHECK(report.environment().packages(0).version() == "0.0.31");
  CHECK(report.environment().settings().at("threads.intraop") == "2");

  REQUIRE(report.processes_size() == 1);
  CHECK(report.processes(0).ended() == "clean");
  CHECK(report.processes(0).tracing() == "traced");
  CHECK(report.processes(0).settings().empty());
  const DeviceMemory& cpu = report.processes(0).devices(0);
  CHECK(cpu.allocated_bytes() == cpu.attributed_bytes() + cpu.unattributed_bytes());

  REQUIRE(report.variants_size() == 5);
  const Variant& fused = report.variants(0);
  CHECK(fused.id() == 1);
  CHECK(fused.operator_() == "aten::scaled_dot_product_attention");
  CHECK(fused.backend() == "flash");
  CHECK(fused.path() == "fused");
  CHECK(fused.count() == 336);
  CHECK(fused.causal());
  CHECK(fused.module().class_name() == "LlamaAttention");
  CHECK(fused.module().selection_state() == "not-attention");
  CHECK(fused.thread() == "python (4711)");
  REQUIRE(fused.layers_size() == 28);
  CHECK(fused.layers(0) == 0);
  CHECK(fused.layers(27) == 27);
  REQUIRE(fused.tensors_size() == 3);
  CHECK(fused.tensors(1).sizes(2) == 128);
  CHECK(fused.tensors(1).device() == "cpu");
  CHECK(SiteFrame(report, fused).function() == "sdpa_attention_forward");
  CHECK(UserFrame(report, fused).line() == 88);

  const Variant& backward = report.variants(1);
  CHECK(backward.phase() == "backward");
  CHECK(backward.forward() == fused.id());
  CHECK(backward.call_path() == fused.call_path());
  CHECK(backward.layers_size() == 28);

  const Variant& math = report.variants(2);
  REQUIRE(math.gates_size() == 3);
  CHECK(math.gates(0).backend() == "flash");
  CHECK(math.gates(0).words() == "pytorch");
  CHECK(math.gates(2).words() == "attntrace");
  CHECK(SiteFrame(report, math).owner() == "user");

  // The library's file lies in a folder of its own, outside the script's: it is named as the owner.
  CHECK(SiteFrame(report, report.variants(4)).owner() == "vendor");

  CHECK(report.totals().forward_calls() == 352);
  CHECK(report.totals().backward_calls() == 348);
  CHECK(report.totals().fused() == 672);
  CHECK(report.totals().dense() == 28);
  CHECK(report.totals().peak_cpu_bytes() == 4ll << 30);
  REQUIRE(report.recent_calls_size() == 3);
  CHECK(report.recent_calls(2).variant() == 1);
  CHECK(report.recent_calls(2).layer() == 3);
  CHECK(report.blind_spots_size() == 0);
}

TEST_CASE("the order in which spools are given does not matter") {
  TemporaryFolder folder;
  SpoolBuilder first(100), second(200);
  FillSample(first);
  FillSample(second);
  second.header().start_realtime_ns = 2'000'000'000;
  const std::string a = first.Write(folder, "a.spool"), b = second.Write(folder, "b.spool");
  const Report forwards = Decode({a, b}), backwards = Decode({b, a});
  CHECK(google::protobuf::util::MessageDifferencer::Equals(forwards, backwards));
  CHECK(forwards.processes(0).pid() == 100);
  REQUIRE(forwards.variants_size() == 10);
  CHECK(forwards.variants(9).id() == 10);
  CHECK(forwards.variants(9).process() == 1);
  // Shared by both processes.
  CHECK(forwards.variants(5).call_path() == forwards.variants(0).call_path());
  CHECK(forwards.call_paths_size() == 3);
}

TEST_CASE("the environment is that of the process that ran attention; others say where they differ") {
  TemporaryFolder folder;
  SpoolBuilder launcher(1), worker(2);
  launcher.Environment("torch", "2.11.0");
  launcher.Environment("threads.intraop", "8");
  worker.Environment("torch", "2.11.0");
  worker.Environment("threads.intraop", "4");
  worker.Environment("threads.intraop", "1");  // the newest wins
  worker.Variant(worker.Sdpa(0, Backend::kFlash, PathKind::kFused), 1);
  worker.header().start_realtime_ns = 2'000'000'000;
  const Report report = Decode({launcher.Write(folder, "1"), worker.Write(folder, "2")});
  CHECK(report.environment().settings().at("threads.intraop") == "1");
  CHECK(report.processes(0).settings().at("threads.intraop") == "8");
  CHECK(report.processes(0).settings().count("torch") == 0);
  CHECK(report.processes(1).settings().empty());
}

TEST_CASE("variants that were never called are left out, but for the forward of a backward that was") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  builder.header().forked_from = 99;
  const auto def = builder.Sdpa(0, Backend::kFlash, PathKind::kFused);
  builder.Variant(def, 0);
  const auto forward = builder.Variant(def, 0);
  builder.Backward(forward, def, 2);
  const Report report = Decode({builder.Write(folder, "a")});
  REQUIRE(report.variants_size() == 2);
  CHECK(report.variants(1).forward() == report.variants(0).id());
  CHECK(report.processes(0).forked_from() == 99);
}

TEST_CASE("what built a module that selects nothing is a call path") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  const uint32_t call = builder.Path({builder.Python("/home/ada/train.py", 20, "<module>", "__main__")});
  const uint32_t built = builder.Path({builder.Python("/home/ada/train.py", 10, "<module>", "__main__")});
  spool::ModuleDef module{};
  module.class_name = builder.String("LlamaAttention");
  module.selection_state = spool::SelectionState::kUnset;
  module.built_path = built;
  spool::VariantDef variant = builder.Sdpa(call, Backend::kEager, PathKind::kDense);
  variant.module = builder.Module(module);
  builder.Variant(variant, 2);
  const Report report = Decode({builder.Write(folder, "a.spool")});
  REQUIRE(report.variants_size() == 1);
  const uint32_t path = report.variants(0).module().built_at();
  REQUIRE(path > 0);
  const CallPath& frames = report.call_paths(static_cast<int>(path) - 1);
  CHECK(report.frames(static_cast<int>(frames.frames(frames.user()))).line() == 10);
}

TEST_CASE("how a process ended") {
  TemporaryFolder folder;
  SpoolBuilder builder(getpid());
  builder.header().state = spool::State::kActive;
  SECTION("killed inside attention") {
    builder.Count(Counter::kOpenCalls, 1);
    const Report report = Decode({builder.Write(folder, "a")});
    CHECK(report.processes(0).ended() == "died");
    CHECK(Codes(report) == std::set<std::string>{"died"});
  }
  SECTION("killed anywhere else, or left by os._exit: nothing is missing") {
    const Report report = Decode({builder.Write(folder, "a")});
    CHECK(report.processes(0).ended() == "died");
    CHECK(report.blind_spots_size() == 0);
  }
  SECTION("alive") {
    std::ifstream stat("/proc/self/stat");
    std::string line;
    std::getline(stat, line);
    std::istringstream fields(line.substr(line.rfind(')') + 2));
    std::string field;
    for (int i = 3; i <= 22; ++i) fields >> field;
    builder.header().start_ticks = std::stoull(field);
    const Report helper = Decode({builder.Write(folder, "a")});
    CHECK(helper.processes(0).ended() == "running");
    CHECK(helper.blind_spots().empty());  // it ran no attention
    builder.Count(Counter::kForwardCalls, 1);
    const Report report = Decode({builder.Write(folder, "b")});
    CHECK(Codes(report) == std::set<std::string>{"running"});
  }
  SECTION("in its start") {
    builder.header().state = spool::State::kStarting;
    const Report report = Decode({builder.Write(folder, "a")});
    CHECK(report.processes(0).tracing() != "traced");
    CHECK(Codes(report).count("untraced") == 1);
  }
}

TEST_CASE("a process that went on as another program has not died") {
  TemporaryFolder folder;
  SpoolBuilder before(42), after(42), other(42);
  before.header().state = spool::State::kActive;
  before.header().start_ticks = after.header().start_ticks = 1234;
  after.header().start_realtime_ns = 2'000'000'000;
  other.header().start_realtime_ns = 3'000'000'000;  // the pid used again
  other.header().start_ticks = 9999;
  other.header().state = spool::State::kActive;
  before.Count(Counter::kOpenCalls, 1);
  other.Count(Counter::kOpenCalls, 1);
  const Report report = Decode({before.Write(folder, "a"), after.Write(folder, "b"), other.Write(folder, "c")});
  CHECK(report.processes(0).ended() == "replaced");
  CHECK(report.processes(1).ended() == "clean");
  CHECK(report.processes(2).ended() == "died");
  REQUIRE(report.blind_spots_size() == 1);
  CHECK(report.blind_spots(0).process() == 2);
}

TEST_CASE("what was missed is said") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  builder.Count(Counter::kFaults, 2);
  builder.Count(Counter::kBackwardUnmatched, 5);
  builder.Count(Counter::kForwardForgotten, 1);
  builder.Count(Counter::kDefinitionsDropped, 1);
  builder.Note("declined", "no agent for torch 1.9");
  builder.Note("declined", "no agent for torch 1.9");
  RunFacts run = SampleRun();
  run.untraced.push_back({77, "no agent for PyTorch 2.3.1"});
  const Report report = Decode({builder.Write(folder, "a")}, run);
  CHECK(Codes(report) == std::set<std::string>{"backward-unmatched", "declined", "definitions-dropped", "faults",
                                               "forward-forgotten", "untraced"});
  for (const BlindSpot& spot : report.blind_spots()) {
    if (spot.code() == "declined") CHECK(spot.count() == 2);
    if (spot.code() == "backward-unmatched") CHECK(spot.count() == 5);
    if (spot.code() == "untraced") CHECK(report.processes(static_cast<int>(spot.process())).pid() == 77);
  }
  CHECK(report.processes(1).tracing() == "no agent for PyTorch 2.3.1");
}

TEST_CASE("calls of variants that found no slot are counted all the same") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  builder.Variant(builder.Sdpa(0, Backend::kFlash, PathKind::kFused), 10);
  builder.Count(Counter::kVariantsDropped, 4);
  builder.Count(Counter::kForwardCalls, 14);
  const Report report = Decode({builder.Write(folder, "a")});
  CHECK(report.totals().forward_calls() == 14);
  CHECK(report.totals().fused() == 10);
  CHECK(report.totals().unknown() == 4);
}

TEST_CASE("a mask's content is what all the masks that were read have in common") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  const auto content = [&](MaskContent first, std::initializer_list<MaskContent> seen) {
    auto def = builder.Sdpa(0, Backend::kFlash, PathKind::kQuadratic);
    def.mask_content = first;
    const auto slot = builder.Variant(def, 8);
    for (MaskContent one : seen) builder.Counters(slot).mask_contents |= uint64_t{1} << static_cast<unsigned>(one);
  };
  using enum MaskContent;
  content(kPlainCausal, {});
  content(kPlainCausal, {kPlainCausal});
  content(kAllTrue, {kAllTrue, kPadding});
  content(kPlainCausal, {kPlainCausal, kCausalPadding, kUnread});
  content(kAllTrue, {kAllTrue, kPlainCausal});
  const Report report = Decode({builder.Write(folder, "a")});
  std::vector<std::string> contents;
  for (const Variant& variant : report.variants()) contents.push_back(variant.mask_content());
  CHECK(contents == std::vector<std::string>{"plain-causal", "plain-causal", "padding", "causal-padding", "other"});
}

TEST_CASE("what was read of a place once is said of all its variants") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  const auto path = builder.Path({builder.Python("train.py", 7, "step", "__main__")});
  const auto fact = [&](uint32_t slot) {
    builder.Record(spool::RecordKind::kFact, slot, spool::FactDef{builder.String("dynamo.recompiles"), builder.String("8")});
  };
  const auto first = builder.Variant(builder.Sdpa(path, Backend::kFlexDense, PathKind::kDense), 2);
  fact(first);
  auto longer = builder.Sdpa(path, Backend::kFlexDense, PathKind::kDense);
  longer.q.sizes[2] *= 2;
  const auto second = builder.Variant(longer, 2);
  builder.Backward(second, longer, 2);
  builder.Variant(
      builder.Sdpa(builder.Path({builder.Python("other.py", 9, "step", "__main__")}), Backend::kFlexDense, PathKind::kDense),
      1);
  builder.Variant(builder.Sdpa(path, Backend::kFlash, PathKind::kFused), 1);
  const Report report = Decode({builder.Write(folder, "a")});
  std::vector<size_t> facts;
  for (const Variant& variant : report.variants()) facts.push_back(static_cast<size_t>(variant.facts_size()));
  CHECK(facts == std::vector<size_t>{1, 1, 1, 0, 0});
}

TEST_CASE("one unreadable spool of several is a blind spot, an only one an error") {
  TemporaryFolder folder;
  SpoolBuilder good, other;
  other.header().version = 99;
  const std::string bad = other.Write(folder, "bad");
  CHECK(Codes(Decode({bad, good.Write(folder, "good")})).count("spool-unreadable") == 1);
  CHECK(absl::IsFailedPrecondition(DecodeSpools({bad}, SampleRun()).status()));
  CHECK(Decode({}).processes_size() == 0);
}

TEST_CASE("strings that are not UTF-8 do not keep a report from being written") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  const uint32_t frame = builder.Python("/srv/caf\xE9/train.py", 1, "\xC0\xAF\xED\xA0\x80", "__main__");
  builder.Variant(builder.Sdpa(builder.Path({frame}), Backend::kMath, PathKind::kDense), 1);
  const Report report = Decode({builder.Write(folder, "a")});
  CHECK(report.frames(0).file() == "/srv/caf\xEF\xBF\xBD/train.py");
  std::string bytes;
  CHECK(report.SerializeToString(&bytes));
  CHECK(Report().ParseFromString(bytes));
}

TEST_CASE("a full spool makes a report below a megabyte") {
  TemporaryFolder folder;
  SpoolBuilder builder;
  const testing::SampleFrames frames(builder);
  const uint32_t path = builder.Path({frames.sdpa, frames.attention, frames.layer, frames.step, frames.main});
  const auto def = builder.Sdpa(path, Backend::kFlash, PathKind::kFused);
  for (uint32_t i = 0; i < spool::kMaxVariants; ++i) builder.Variant(def, 500, 1 << 20);
  for (uint64_t i = 1; i <= 2 * spool::kRingEvents; ++i) builder.Event(i, static_cast<uint32_t>(i % 100), 1'000'000'000 * i);
  const Report report = Decode({builder.Write(folder, "a")});
  CHECK(report.variants_size() == static_cast<int>(spool::kMaxVariants));
  CHECK(report.ByteSizeLong() < 1'000'000);
}

}  // namespace
}  // namespace attntrace
