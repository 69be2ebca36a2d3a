#include "report/bound.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/unit/catch.h"

namespace attntrace {
namespace {

void AddTensor(int64_t length, Variant* variant) {
  Tensor* tensor = variant->add_tensors();
  tensor->set_role("q");
  tensor->set_dtype("float32");
  tensor->set_device("cpu");
  for (const int64_t size : {int64_t{2}, int64_t{4}, length, int64_t{64}}) tensor->add_sizes(size);
  for (const int64_t stride : {256 * length, 64 * length, int64_t{64}, int64_t{1}}) tensor->add_strides(stride);
}

Variant* AddCall(uint32_t path, int64_t length, const std::string& phase, Report* report) {
  Variant* variant = report->add_variants();
  variant->set_id(static_cast<uint32_t>(report->variants_size()));
  variant->set_operator_("aten::scaled_dot_product_attention");
  variant->set_phase(phase);
  variant->set_backend("math");
  variant->set_path("dense");
  variant->set_count(3);
  variant->set_peak_bytes(length);
  variant->set_allocated_bytes(7);
  variant->set_kernel_launches(9);
  variant->set_device_ns(11);
  variant->set_timed_launches(13);
  variant->set_call_path(path);
  variant->set_min_seq_kv(length);
  variant->set_max_seq_kv(length);
  AddTensor(length, variant);
  return variant;
}

// A program of `sites` call paths, `depth` frames each, that was called forward and backward with `shapes` lengths and refused
// by `gates` conditions. The user's frame is the outermost but one.
Report Program(int sites, int depth, int shapes, int gates) {
  Report report;
  report.add_processes();
  for (int site = 0; site < sites; ++site) {
    CallPath* path = report.add_call_paths();
    for (int i = 0; i < depth; ++i) {
      path->add_frames(static_cast<uint32_t>(report.frames_size()));
      Frame* frame = report.add_frames();
      frame->set_file("/home/ada/project/packages/generated/model.py");
      frame->set_function(absl::StrCat("a_rather_long_name_of_a_function_", site, "_", i));
      frame->set_owner(i == depth - 2 ? "user" : "library");
    }
    path->set_call_site(0);
    path->set_user(depth - 2);
    for (int shape = 0; shape < shapes; ++shape) {
      Variant* forward = AddCall(static_cast<uint32_t>(site) + 1, 16 + shape, "forward", &report);
      for (int i = 0; i < gates; ++i) {
        Gate* gate = forward->add_gates();
        gate->set_backend("flash");
        gate->set_text(absl::StrCat("condition ", i, " of ", shape, std::string(150, '.')));
      }
      const uint32_t id = forward->id();
      AddCall(static_cast<uint32_t>(site) + 1, 16 + shape, "backward", &report)->set_forward(id);
    }
  }
  RecentCall* call = report.add_recent_calls();
  call->set_variant(static_cast<uint32_t>(report.variants_size()));
  return report;
}

uint64_t Calls(const Report& report, const std::string& phase) {
  uint64_t calls = 0;
  for (const Variant& variant : report.variants()) calls += variant.phase() == phase ? variant.count() : 0;
  return calls;
}

uint64_t Sum(const Report& report, uint64_t (Variant::*field)() const) {
  uint64_t sum = 0;
  for (const Variant& variant : report.variants()) sum += (variant.*field)();
  return sum;
}

int64_t Longest(const Report& report) {
  int64_t longest = 0;
  for (const Variant& variant : report.variants()) longest = std::max(longest, variant.max_seq_kv());
  return longest;
}

// Whatever was folded: it fits, nothing that was counted is gone, and every reference is good.
void CheckBounded(const Report& before, const Report& after) {
  CHECK(after.ByteSizeLong() <= kObservedLimit);
  CHECK(Calls(after, "forward") == Calls(before, "forward"));
  CHECK(Calls(after, "backward") == Calls(before, "backward"));
  CHECK(Longest(after) == Longest(before));
  for (const auto field :
       {&Variant::allocated_bytes, &Variant::kernel_launches, &Variant::device_ns, &Variant::timed_launches}) {
    CHECK(Sum(after, field) == Sum(before, field));
  }
  bool good = true;
  for (int i = 0; i < after.variants_size(); ++i) {
    const Variant& variant = after.variants(i);
    good = good && variant.id() == static_cast<uint32_t>(i) + 1;
    good = good && (variant.call_path() != 0 || !variant.no_call_path().empty());
    good = good && variant.call_path() <= static_cast<uint32_t>(after.call_paths_size());
    if (variant.phase() == "backward") {
      good = good && variant.forward() >= 1 && variant.forward() <= static_cast<uint32_t>(i);
      const Variant& forward = after.variants(static_cast<int>(variant.forward()) - 1);
      good = good && forward.phase() == "forward";
      good = good && (variant.call_path() == 0 || variant.call_path() == forward.call_path());
    }
  }
  CHECK(good);
  for (const CallPath& path : after.call_paths()) {
    good = good && path.call_site() == 0 && path.user() >= 0 && path.user() < path.frames_size();
    good = good && after.frames(static_cast<int>(path.frames(path.user()))).owner() == "user";
  }
  CHECK(good);
  CHECK(after.recent_calls(0).variant() >= 1);
  CHECK(after.recent_calls(0).variant() <= static_cast<uint32_t>(after.variants_size()));
}

TEST_CASE("a report that is small enough stays as it is") {
  const Report before = Program(10, 20, 4, 3);
  Report after = before;
  BoundReport(kObservedLimit, &after);
  CHECK(after.SerializeAsString() == before.SerializeAsString());
}

TEST_CASE("of many shapes of one call path some stay apart, and the rest is one variant") {
  const Report before = Program(16, 40, 64, 4);
  REQUIRE(before.ByteSizeLong() > kObservedLimit);
  Report after = before;
  BoundReport(kObservedLimit, &after);
  CheckBounded(before, after);
  CHECK(after.call_paths_size() == 16);
  std::set<uint32_t> folded;
  for (const Variant& variant : after.variants()) {
    if (variant.shapes_folded() && variant.phase() == "forward") CHECK(folded.insert(variant.call_path()).second);
  }
  CHECK(folded.size() == 16);
}

TEST_CASE("deep call paths lose their outer frames, and keep the user's") {
  Report before = Program(500, 128, 1, 1);
  before.mutable_variants(0)->mutable_module()->set_built_at(400);
  REQUIRE(before.ByteSizeLong() > kObservedLimit);
  Report after = before;
  BoundReport(kObservedLimit, &after);
  CheckBounded(before, after);
  const auto built_by = [](const Report& report) {  // a path's innermost frame names it
    const auto path = static_cast<int>(report.variants(0).module().built_at());
    return report.frames(static_cast<int>(report.call_paths(path - 1).frames(0))).function();
  };
  CHECK(built_by(after) == built_by(before));
  CHECK(after.call_paths_size() == 500);
  CHECK(after.variants_size() == before.variants_size());
  CHECK(after.call_paths(0).truncated());
}

TEST_CASE("whatever a program does, its report has a bound") {
  for (const auto& [sites, depth, shapes, gates] :
       {std::tuple{2000, 128, 1, 8}, std::tuple{1, 4, 4000, 8}, std::tuple{100, 64, 20, 40}, std::tuple{4000, 3, 1, 0}}) {
    const Report before = Program(sites, depth, shapes, gates);
    Report after = before;
    BoundReport(kObservedLimit, &after);
    CheckBounded(before, after);
  }
}

TEST_CASE("an exception's text of any length does not fill a report") {
  Report report = Program(1, 4, 1, 0);
  for (int i = 0; i < 100; ++i) report.add_incidents()->set_message(std::string(16000, 'x'));
  BoundReport(kObservedLimit, &report);
  CHECK(report.ByteSizeLong() <= kObservedLimit);
  CHECK(report.incidents_size() == 100);
}

TEST_CASE("findings that do not fit are counted") {
  Report report;
  for (int i = 0; i < 1000; ++i) {
    Finding* finding = report.add_findings();
    finding->set_rule(absl::StrCat("rule-", i));
    finding->set_why(std::string(1000, 'x'));
  }
  Report few = report;
  few.mutable_findings()->DeleteSubrange(100, 900);
  BoundFindings(kFindingsLimit, &few);
  CHECK(few.findings_size() == 100);
  CHECK(few.blind_spots().empty());
  BoundFindings(kFindingsLimit, &report);
  CHECK(report.findings(0).rule() == "rule-0");
  CHECK(report.ByteSizeLong() <= kFindingsLimit + 1000);
  REQUIRE(report.blind_spots_size() == 1);
  CHECK(report.blind_spots(0).code() == "findings-dropped");
  CHECK(report.blind_spots(0).count() + static_cast<uint64_t>(report.findings_size()) == 1000);
}

}  // namespace
}  // namespace attntrace
