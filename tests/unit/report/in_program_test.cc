// Reference runs that the traced program made: from the spool's bytes to the findings.
#include "report/reference/in_program.h"

#include <string>
#include <vector>

#include "kernels/steps.h"
#include "report/decode.h"
#include "tests/unit/catch.h"
#include "tests/unit/report/sample.h"

namespace attntrace {
namespace {

using testing::SampleRun;
using testing::SpoolBuilder;
using testing::TemporaryFolder;

// As the agent appends it.
void Append(SpoolBuilder* builder, uint32_t slot, const std::string& text, int claims_more = 0) {
  const spool::ReferenceDef def{static_cast<uint32_t>(text.size()) + static_cast<uint32_t>(claims_more), 0};
  const std::string payload = std::string(reinterpret_cast<const char*>(&def), sizeof def) + text;
  builder->Record(spool::RecordKind::kReference, slot, payload.data(), payload.size());
}

std::string Text(const std::string& purpose, const std::string& path, const std::vector<std::string>& changes,
                 const std::string& status, int64_t peak) {
  reference::Request request;
  request.path = path, request.changes = changes;
  request.q = request.k = request.v = {{2, 4, 128, 16}, {8192, 2048, 16, 1}, "float32", false};
  reference::Response response;
  response.status = status, response.words = "as it was said", response.backend = path;
  response.total_peak_bytes = peak;
  return purpose + "\n" + Encode(request) + "\n" + Encode(response);
}

// Two equal calls of math at two places, the first of which was run again; and a fused one.
Report Decode(const std::vector<std::string>& references) {
  TemporaryFolder folder;
  SpoolBuilder builder;
  const uint32_t here = builder.Path({builder.Python("/w/train.py", 8, "step", "__main__")});
  const uint32_t there = builder.Path({builder.Python("/w/train.py", 9, "step", "__main__")});
  const uint32_t first = builder.Variant(builder.Sdpa(here, Backend::kMath, PathKind::kDense), 2, 1000);
  const uint32_t second = builder.Variant(builder.Sdpa(there, Backend::kMath, PathKind::kDense), 2, 1000);
  const uint32_t fused = builder.Variant(builder.Sdpa(here, Backend::kFlash, PathKind::kFused), 2, 10);
  for (const std::string& text : references) Append(&builder, first, text);
  auto report = DecodeSpools({builder.Write(folder, "a.spool")}, SampleRun());
  REQUIRE(report.ok());
  for (const uint32_t slot : {first, second}) report->add_findings()->add_variants(slot + 1);
  report->mutable_findings(1)->add_advice()->set_change("sdpa");
  CHECK(fused == 2);
  return *std::move(report);
}

TEST_CASE("a run of one place stands for all equal calls, and is marked") {
  Report report = Decode({Text("observed", "math", {}, "ok", 5000), Text("change", "fused", {"allow"}, "ok", 100)});
  REQUIRE(report.reference_runs_size() == 2);
  SettleInProgram(&report);
  REQUIRE(report.reference_runs_size() == 2);
  for (const ReferenceRun& run : report.reference_runs()) {
    CHECK(run.in_program());
    CHECK(std::vector<uint32_t>(run.variants().begin(), run.variants().end()) == std::vector<uint32_t>{1, 2});
  }
  for (const Finding& finding : report.findings()) {
    CHECK(finding.measured_in_program());
    CHECK(finding.observed_peak_bytes() == 5000);
    CHECK(finding.fused_peak_bytes() == 100);
  }
}

TEST_CASE("what the program did not get to is said, once a case") {
  Report report = Decode({});
  SettleInProgram(&report);
  REQUIRE(report.reference_runs_size() == 1);
  CHECK(report.reference_runs(0).status() == "skipped");
  CHECK(report.reference_runs(0).words().find("no quiet moment") != std::string::npos);
  REQUIRE(report.findings(0).reference_notes_size() == 1);
  CHECK(report.findings(0).fused_peak_bytes() == 0);
}

TEST_CASE("what was skipped in the program keeps its words") {
  Report report = Decode({Text("observed", "math", {}, "skipped", 0), Text("twin", "tiled", {}, "ok", 100)});
  SettleInProgram(&report);
  REQUIRE(report.reference_runs_size() == 2);
  CHECK(report.findings(0).reference_notes(0) == "the path taken, math: skipped, as it was said");
}

TEST_CASE("runs of what no finding names are dropped") {
  Report report = Decode({Text("observed", "math", {}, "ok", 5000)});
  report.clear_findings();
  SettleInProgram(&report);
  CHECK(report.reference_runs().empty());
}

TEST_CASE("records of references that are cut short or say nothing readable are left out") {
  CHECK(Decode({"observed\nid=x\nid=1", "observed", "", "a\nb\nc\nd"}).reference_runs().empty());
  TemporaryFolder folder;
  SpoolBuilder builder;
  builder.Variant(builder.Sdpa(0, Backend::kMath, PathKind::kDense), 1);
  Append(&builder, 0, Text("observed", "math", {}, "ok", 5000), /*claims_more=*/1000);
  Append(&builder, spool::kMaxVariants, Text("observed", "math", {}, "ok", 5000));
  const auto report = DecodeSpools({builder.Write(folder, "a.spool")}, SampleRun());
  REQUIRE(report.ok());
  CHECK(report->reference_runs().empty());
  CHECK(report->variants_size() == 1);
}

}  // namespace
}  // namespace attntrace
