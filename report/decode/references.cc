#include "report/decode/references.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "report/decode/text.h"
#include "report/reference/plan.h"

namespace attntrace {

void AddReferences(const Definitions& definitions, uint32_t slot, uint32_t variant, Report* report) {
  for (const absl::string_view text : definitions.References(slot)) {
    const std::vector<std::string> lines = absl::StrSplit(CleanUtf8(text), '\n');
    reference::Done done;
    std::string why;
    if (lines.size() != 3 || !Decode(lines[1], &done.step.request, &why) || !Decode(lines[2], &done.response, &why)) continue;
    done.step.purpose = lines[0];
    ReferenceRun run = MakeRun({variant}, done);
    run.set_in_program(true);
    *report->add_reference_runs() = std::move(run);
  }
}

}  // namespace attntrace
