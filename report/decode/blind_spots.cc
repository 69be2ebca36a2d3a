#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "report/decode/stages.h"

namespace attntrace {
namespace {

// A counter that means something was not seen, and how to say so. Zero says nothing.
struct CountedBlindSpot {
  Counter counter;
  const char* code;
  const char* text;
};

constexpr CountedBlindSpot kCounted[] = {
    {Counter::kVariantsDropped, "variants-dropped",
     "more kinds of attention call than a spool has room for: these are only counted"},
    {Counter::kDefinitionsDropped, "definitions-dropped", "the spool's log was full: names, paths or gates are missing"},
    {Counter::kFaults, "faults", "errors caught inside attntrace: what it was looking at is missing"},
    {Counter::kBackwardUnmatched, "backward-unmatched", "backward passes of attention whose forward was not seen"},
    {Counter::kForwardForgotten, "forward-forgotten", "forward calls forgotten before their backward ran: too many were open"},
    {Counter::kNoCallPath, "no-call-path", "calls whose call path could not be taken"},
    {Counter::kKernelNamesDropped, "kernel-names-dropped", "kernels that are counted without their names: there were too many"},
    {Counter::kGpuRecordsLost, "gpu-records-lost", "kernels whose device time is missing: CUPTI had no room for their records"},
    {Counter::kGpuRecordsBad, "gpu-records-bad", "kernels whose records had no times, or times of another clock"},
    {Counter::kGpuLaunchesLost, "gpu-launches-lost",
     "launches of calls whose records came too late to be told whose they were"},
    {Counter::kTentativeDropped, "tentative-dropped", "possible hand-written attention given up before it could be judged"},
};

void Add(Report* report, uint32_t process, std::string code, std::string text, uint64_t count) {
  BlindSpot* spot = report->add_blind_spots();
  spot->set_code(std::move(code));
  spot->set_text(std::move(text));
  spot->set_process(process);
  spot->set_count(count);
}

}  // namespace

void DecodeBlindSpots(const ProcessContext& context, Report* report) {
  const Process& process = report->processes(static_cast<int>(context.index));
  const auto add = [&](std::string code, std::string text, uint64_t count) {
    Add(report, context.index, std::move(code), std::move(text), count);
  };

  std::map<std::pair<std::string, std::string>, uint64_t> notes;
  for (const spool::NoteDef* note : context.definitions.notes()) {
    ++notes[{context.definitions.String(note->code), context.definitions.String(note->text)}];
  }
  for (const auto& [note, count] : notes) add(note.first, note.second, count);

  for (const CountedBlindSpot& counted : kCounted) {
    if (const uint64_t count = context.spool.counter(counted.counter); count > 0) add(counted.code, counted.text, count);
  }

  if (process.tracing() != "traced") add("untraced", absl::StrCat("process ", process.pid(), ": ", process.tracing()), 1);
  // What was counted before a process died is all there; only a call that it died in is not.
  if (const uint64_t open = context.spool.counter(Counter::kOpenCalls); process.ended() == "died" && open > 0) {
    add("died", absl::StrCat("process ", process.pid(), " died inside attention: the calls that were open then are missing"),
        open);
  }
  // One that has run no attention is most often a helper that outlives its program (Inductor's compile workers): nothing of it
  // is missing so far, and the launcher names it.
  const uint64_t calls = context.spool.counter(Counter::kForwardCalls) + context.spool.counter(Counter::kBackwardCalls) +
                         context.spool.counter(Counter::kRecomputeCalls) + context.spool.counter(Counter::kOpenCalls);
  if (process.ended() == "running" && calls > 0) {
    add("running", absl::StrCat("process ", process.pid(), " was still running when it was read: what it did since is missing"),
        1);
  }
  if (const uint64_t bytes = context.spool.missing_bytes(); bytes > 0) {
    add("spool-truncated", absl::StrCat("the spool of process ", process.pid(), " is cut short by ", bytes, " bytes"), bytes);
  }
  if (const uint64_t bytes = context.spool.damaged_bytes(); bytes > 0) {
    add("spool-damaged",
        absl::StrCat("the spool of process ", process.pid(), " is damaged: definitions behind the damage are lost"), bytes);
  }
  if (const uint64_t records = context.definitions.malformed(); records > 0) {
    add("spool-damaged", absl::StrCat("records of the spool of process ", process.pid(), " make no sense and were left out"),
        records);
  }
}

}  // namespace attntrace
