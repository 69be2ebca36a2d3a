#include "report/decode.h"
#include "report/writers/writers.h"
#include "tests/unit/catch.h"
#include "tests/unit/report/sample.h"

namespace attntrace {
namespace {

TEST_CASE("the line for scripts keeps its keys and their order") {
  Report report;
  CHECK(SummaryLine(report, "") ==
        "SUMMARY status=untraced findings=- calls=0/0/0 fused=0 dense=0 quadratic=0 blind=0 peak_cpu=0 peak_cuda=0 report=-");

  report.add_processes()->set_tracing("traced");
  report.add_blind_spots()->set_code("faults");
  Totals& totals = *report.mutable_totals();
  totals.set_forward_calls(48);
  totals.set_backward_calls(47);
  totals.set_recompute_calls(1);
  totals.set_fused(40);
  totals.set_dense(56);
  totals.set_quadratic(2);
  totals.set_peak_cpu_bytes(123456789);
  totals.set_peak_cuda_bytes(99);
  CHECK(SummaryLine(report, "a.attn") ==
        "SUMMARY status=clean findings=- calls=48/47/1 fused=40 dense=56 quadratic=2 blind=1 peak_cpu=123456789 peak_cuda=99 "
        "report=a.attn");

  for (const char* rule : {"sdpa-math", "eager-attention", "sdpa-math"}) report.add_findings()->set_rule(rule);
  CHECK(SummaryLine(report, "a.attn").substr(0, 65) == "SUMMARY status=findings findings=sdpa-math:2,eager-attention:1 ca");
}

TEST_CASE("writers are found by their names") {
  REQUIRE(AllWriters().size() >= 2);
  CHECK(FindWriter("text") == &AllWriters()[0]);
  REQUIRE(FindWriter("json") != nullptr);
  CHECK(FindWriter("jso") == nullptr);
}

TEST_CASE("JSON has the names of report.proto, and fields that are zero") {
  testing::TemporaryFolder folder;
  testing::SpoolBuilder builder;
  testing::FillSample(builder);
  const auto report = DecodeSpools({builder.Write(folder, "a")}, testing::SampleRun());
  REQUIRE(report.ok());
  const std::string json = FindWriter("json")->write(*report, {});
  for (const char* part :
       {"\"variants\": [", "\"operator\": \"aten::scaled_dot_product_attention\"", "\"peak_bytes\": \"",
        "\"score_bytes\": \"524288\"", "\"path\": \"dense\"", "\"findings\": []", "\"shapes_folded\": false"}) {
    INFO(part);
    CHECK(json.find(part) != std::string::npos);
  }
}

}  // namespace
}  // namespace attntrace
