#include "report/reference/in_program.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "report/reference/findings.h"
#include "report/reference/plan.h"

namespace attntrace {
namespace {

bool AnswersFor(const ReferenceRun& run, const ReferenceCase& one) {
  return std::any_of(run.variants().begin(), run.variants().end(), [&](uint32_t id) {
    return std::find(one.variants.begin(), one.variants.end(), id) != one.variants.end();
  });
}

// Equal calls of several places are each run once: those of the variant that was run first stand for all.
std::vector<ReferenceRun> Of(const ReferenceCase& one, const std::vector<ReferenceRun>& all) {
  std::vector<ReferenceRun> own;
  for (const ReferenceRun& run : all) {
    if (!AnswersFor(run, one) || (!own.empty() && run.variants(0) != own.front().variants(0))) continue;
    own.push_back(run);
  }
  for (ReferenceRun& run : own) run.mutable_variants()->Assign(one.variants.begin(), one.variants.end());
  return own;
}

ReferenceRun NotMade(const ReferenceCase& one) {
  reference::Done done;
  done.step.purpose = "observed";
  done.step.request = one.call;
  done.step.request.path = one.observed_path;
  done.response.status = "skipped";
  done.response.words = "the program had no quiet moment left for it; attntrace report --reference runs it";
  ReferenceRun run = MakeRun(one.variants, done);
  run.set_in_program(true);
  return run;
}

}  // namespace

void SettleInProgram(Report* report) {
  const std::vector<ReferenceRun> all(report->reference_runs().begin(), report->reference_runs().end());
  report->clear_reference_runs();
  for (const ReferenceCase& one : PlanReference(*report)) {
    std::vector<ReferenceRun> own = Of(one, all);
    if (own.empty()) own.push_back(NotMade(one));
    for (ReferenceRun& run : own) *report->add_reference_runs() = std::move(run);
  }
  ApplyReference(report);
}

}  // namespace attntrace
