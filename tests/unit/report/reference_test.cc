// What is worth a reference run, what is tried on it, and what the answers make of a finding: no process is started.
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "report/reference/findings.h"
#include "report/reference/plan.h"
#include "tests/unit/catch.h"

namespace attntrace {
namespace {

Tensor Make(const std::string& role, const std::vector<int64_t>& sizes, const std::string& dtype = "float32") {
  Tensor tensor;
  tensor.set_role(role);
  tensor.set_dtype(dtype);
  tensor.set_device("cpu");
  tensor.mutable_sizes()->Add(sizes.begin(), sizes.end());
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * sizes[i];
  tensor.mutable_strides()->Add(strides.begin(), strides.end());
  tensor.set_requires_grad(true);
  return tensor;
}

Variant* Add(Report* report, const std::string& text, const std::vector<int64_t>& sizes) {
  Variant* const variant = report->add_variants();
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, variant));
  variant->set_id(static_cast<uint32_t>(report->variants_size()));
  if (variant->phase().empty()) variant->set_phase("forward");
  for (const char* role : {"q", "k", "v"}) *variant->add_tensors() = Make(role, sizes);
  return variant;
}

void Name(Report* report, std::vector<uint32_t> variants, const std::string& change = "") {
  Finding* const finding = report->add_findings();
  finding->mutable_variants()->Add(variants.begin(), variants.end());
  if (change.empty()) return;
  finding->add_advice()->set_change(change);
  finding->mutable_advice(0)->set_proof("unproven");
}

const std::vector<int64_t> kSmall = {1, 2, 32, 16}, kLarge = {1, 8, 512, 64};

// Answers every step of a case from a table of path and changes to a response.
std::vector<ReferenceRun> Play(const ReferenceCase& one, reference::Response (*answer)(const reference::Request&)) {
  std::vector<reference::Done> done;
  while (const auto step = NextStep(one, done)) {
    done.push_back({*step, answer(step->request)});
    REQUIRE(done.size() < 20);
  }
  std::vector<ReferenceRun> runs;
  for (const reference::Done& step : done) runs.push_back(MakeRun(one.variants, step));
  return runs;
}

std::string Asked(const std::vector<ReferenceRun>& runs) {
  std::string text;
  for (const ReferenceRun& run : runs) {
    text += run.path();
    for (const std::string& change : run.changes()) text += "+" + change;
    text += " ";
  }
  return text;
}

reference::Response Ok(int64_t peak, uint64_t ns, const char* backend) {
  reference::Response response;
  response.status = "ok";
  response.backend = backend;
  response.total_peak_bytes = response.forward_peak_bytes = peak;
  response.forward_ns = ns;
  return response;
}

reference::Response Refused() {
  reference::Response response;
  response.status = "refused";
  return response;
}

}  // namespace

TEST_CASE("only dense calls of findings are planned, the largest saving first, equal ones once") {
  Report report;
  Add(&report, R"(backend: "math" path: "dense" peak_bytes: 1000)", kSmall);
  Add(&report, R"(backend: "math" path: "dense" peak_bytes: 9000)", kLarge);
  Add(&report, R"(backend: "flash" path: "fused" peak_bytes: 99000)", kLarge);
  Add(&report, R"(backend: "math" path: "dense" peak_bytes: 2000)", kSmall);
  Add(&report, R"(backend: "math" path: "dense" peak_bytes: 99000 dropout_p: 0.5)", kLarge);  // of no finding
  Add(&report, R"(phase: "backward" backend: "math" path: "dense" peak_bytes: 500 forward: 2)", kLarge);
  Name(&report, {1, 2, 3, 4, 6});
  const std::vector<ReferenceCase> cases = PlanReference(report);
  REQUIRE(cases.size() == 2);
  CHECK(cases[0].variants == std::vector<uint32_t>{2});
  CHECK(cases[0].call.backward);
  CHECK(cases[1].variants == std::vector<uint32_t>{1, 4});
  CHECK_FALSE(cases[1].call.backward);
}

TEST_CASE("a call without a key has nothing to measure") {
  Report report;
  Add(&report, R"(backend: "math" path: "dense")", {1, 2, 0, 16});
  Name(&report, {1});
  CHECK(PlanReference(report).empty());
}

TEST_CASE("changes that would do something") {
  Report report;
  Variant* const variant = Add(
      &report, R"(backend: "math" path: "dense" dropout_p: 0.1 mask_kind: "float" mask_content: "plain-causal")", {4, 32, 20});
  *variant->add_tensors() = Make("mask", {32, 32}, "float64");
  variant->mutable_tensors(0)->set_strides(2, 7);
  Name(&report, {1});
  const std::vector<ReferenceCase> cases = PlanReference(report);
  REQUIRE(cases.size() == 1);
  const std::vector<std::string> changes = reference::ApplicableChanges(cases[0].call);
  CHECK(changes == std::vector<std::string>{"unsqueeze", "contiguous", "drop-mask", "mask-dtype", "pad-head", "detach-mask",
                                            "move-dropout", "no-dropout"});
}

TEST_CASE("what nothing refuses needs no further change") {
  Report report;
  Add(&report, R"(backend: "math" path: "dense" dropout_p: 0.1)", kSmall);
  Name(&report, {1});
  const auto runs = Play(PlanReference(report)[0], [](const reference::Request& request) {
    return request.path == "math" ? Ok(1000, 10, "math") : Ok(10, 1, "flash");
  });
  CHECK(Asked(runs) == "math fused+allow ");
}

TEST_CASE("single changes first, all together where none is enough, our own kernel where none keeps the result") {
  Report report;
  Variant* const variant = Add(&report, R"(backend: "math" path: "dense" dropout_p: 0.1)", kSmall);
  variant->mutable_tensors(2)->set_sizes(3, 24);
  Name(&report, {1});
  const ReferenceCase one = PlanReference(report)[0];
  const auto stubborn = Play(one, [](const reference::Request& request) {
    if (request.path != "fused") return Ok(1000, 10, request.path.c_str());
    return request.changes.size() == 2 ? Ok(10, 1, "flash") : Refused();
  });
  CHECK(Asked(stubborn) ==
        "math fused+allow fused+pad-head fused+move-dropout fused+no-dropout fused+pad-head+move-dropout tiled ");
  const auto easy = Play(one, [](const reference::Request& request) {
    if (request.path != "fused") return Ok(1000, 10, request.path.c_str());
    return request.changes[0] == "pad-head" ? Ok(10, 1, "flash") : Refused();
  });
  CHECK(Asked(easy) == "math fused+allow fused+pad-head fused+move-dropout fused+no-dropout ");
}

TEST_CASE(
    "a flex call with a causal block mask is run with one, and as SDPA with is_causal; another mask is said to be left out") {
  for (const std::string content : {"plain-causal", "other"}) {
    Report report;
    Add(&report, "backend: 'flex-dense' path: 'dense' mask_kind: 'block-mask' mask_content: '" + content + "'", kSmall);
    Name(&report, {1});
    const auto runs = Play(PlanReference(report)[0], [](const reference::Request& request) {
      const bool causal = request.mask_content == "plain-causal";
      CHECK(request.causal == (causal && request.path == "fused"));
      return Ok(request.path == "flex-dense" ? 1000 : 10, 10, request.path.c_str());
    });
    CHECK(Asked(runs) == "flex-dense fused flex-compiled+compile ");
    for (const ReferenceRun& run : runs) *report.add_reference_runs() = run;
    ApplyReference(&report);
    CHECK(report.findings(0).fused_peak_bytes() == 10);
    const auto& notes = report.findings(0).reference_notes();
    CHECK((content == "other") == (notes.size() == 1 && notes[0].find("run without the program's block mask") == 0));
  }
}

TEST_CASE("figures and proven advice of a finding, and again the same") {
  Report report;
  Add(&report, R"(backend: "math" path: "dense" dropout_p: 0.1 peak_bytes: 1000000)", kSmall);
  Name(&report, {1}, "no-dropout");
  report.mutable_findings(0)->add_layers(0);
  report.mutable_findings(0)->add_layers(1);
  const auto runs = Play(PlanReference(report)[0], [](const reference::Request& request) {
    if (request.path == "math") {
      reference::Response response = Ok(1000000, 100, "math");
      response.kept_bytes = 600000;
      return response;
    }
    if (request.path == "tiled") return Ok(200000, 50, "tiled");
    return request.changes[0] == "no-dropout" ? Ok(100000, 20, "flash") : Refused();
  });
  for (const ReferenceRun& run : runs) *report.add_reference_runs() = run;
  for (int i = 0; i < 2; ++i) {
    ApplyReference(&report);
    const Finding& finding = report.findings(0);
    CHECK(finding.fused_backend() == "tiled");  // the library's kernel ran without dropout: another result
    CHECK(finding.observed_peak_bytes() == 1000000);
    CHECK(finding.fused_peak_bytes() == 200000);
    CHECK(finding.peak_ratio() == 5);
    CHECK(finding.time_ratio() == 2);
    CHECK(finding.saved_bytes_all_layers() == 800000 + 600000);
    CHECK(finding.reference_notes().empty());
    REQUIRE(finding.advice_size() == 1);
    CHECK(finding.advice(0).proof() == "proven");
    CHECK(finding.advice(0).alters_result());
    CHECK(finding.advice(0).peak_bytes() == 100000);
  }
}

TEST_CASE("a change that no rule speaks of is an advice of its own, and goes with its run") {
  Report report;
  Add(&report, R"(backend: "math" path: "dense" dropout_p: 0.1)", kSmall);
  Name(&report, {1}, "contiguous");
  report.mutable_findings(0)->mutable_advice(0)->set_code("dropout_p=0.0");  // words do not count
  const auto runs = Play(PlanReference(report)[0], [](const reference::Request& request) {
    if (request.path != "fused") return Ok(1000000, 100, request.path.c_str());
    return request.changes[0] == "no-dropout" ? Ok(100000, 20, "flash") : Refused();
  });
  for (const ReferenceRun& run : runs) *report.add_reference_runs() = run;
  for (int i = 0; i < 2; ++i) {
    ApplyReference(&report);
    REQUIRE(report.findings(0).advice_size() == 2);
    CHECK(report.findings(0).advice(0).proof() == "unproven");
    CHECK(report.findings(0).advice(1).change() == "no-dropout");
    CHECK(report.findings(0).advice(1).proof() == "proven");
    CHECK(report.findings(0).advice(1).text() == "no dropout");
  }
  report.clear_reference_runs();
  ApplyReference(&report);
  REQUIRE(report.findings(0).advice_size() == 1);
  CHECK(report.findings(0).advice(0).change() == "contiguous");
}

TEST_CASE("what failed and what does not agree is a note") {
  Report report;
  Add(&report, R"(backend: "math" path: "dense" peak_bytes: 5000000)", kSmall);
  Name(&report, {1});
  const auto runs = Play(PlanReference(report)[0], [](const reference::Request& request) {
    if (request.path == "math") return Ok(1000000, 100, "math");
    reference::Response response;
    response.status = "error";
    response.words = "it died";
    return response;
  });
  for (const ReferenceRun& run : runs) *report.add_reference_runs() = run;
  ApplyReference(&report);
  const Finding& finding = report.findings(0);
  REQUIRE(finding.reference_notes_size() == 3);
  CHECK(finding.reference_notes(0).find("forward took 4.77 MiB in the program and 977 KiB") == 0);
  CHECK(finding.reference_notes(1) == "fused: error, it died");
  CHECK(finding.fused_peak_bytes() == 0);
  CHECK(finding.advice().empty());
}

TEST_CASE("a first call that made cuBLAS's workspace agrees, and is explained") {
  Report report;
  Add(&report, R"(backend: "math" path: "dense" peak_bytes: 34600000)", kSmall);
  Name(&report, {1});
  const int64_t workspace = GENERATE(int64_t{32} << 20, int64_t{8} << 20);  // the second is not what it took more
  const auto runs = Play(PlanReference(report)[0], [](const reference::Request&) { return Ok(1000000, 100, "math"); });
  for (const ReferenceRun& run : runs) {
    *report.add_reference_runs() = run;
    report.mutable_reference_runs(report.reference_runs_size() - 1)->set_workspace_bytes(workspace);
  }
  ApplyReference(&report);
  REQUIRE(report.findings(0).reference_notes_size() == 1);
  const std::string& note = report.findings(0).reference_notes(0);
  CHECK((note.find("32 MiB of it cuBLAS's workspace") != std::string::npos) == (workspace == int64_t{32} << 20));
  CHECK((note.find("in the reference") != std::string::npos) == (workspace == int64_t{8} << 20));
}

TEST_CASE("a line of the protocol comes back as it went") {
  reference::Request request;
  request.id = 7, request.path = "fused", request.changes = {"pad-head", "sdpa"}, request.device = "cuda:1";
  request.q = {{1, 2, 3}, {6, 3, 1}, "bfloat16", true};
  request.k = request.v = request.q;
  request.mask = reference::TensorSpec{{3, 3}, {0, 1}, "bool", false};
  request.mask_content = "padding", request.scale = 0.1, request.dropout = 0.3, request.causal = request.backward = true;
  reference::Request again;
  std::string why;
  REQUIRE(Decode(Encode(request), &again, &why));
  CHECK(Encode(again) == Encode(request));
  CHECK(again.mask->strides == request.mask->strides);
  reference::Response response;
  response.words = "100% = \"too\" much\nof it";
  reference::Response response_again;
  REQUIRE(Decode(Encode(response), &response_again, &why));
  CHECK(response_again.words == response.words);
  CHECK_FALSE(Decode("id=1 nonsense=2", &request, &why));
  CHECK_FALSE(Decode("id=x", &request, &why));
}

}  // namespace attntrace
