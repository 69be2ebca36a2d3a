#include "report/decode.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "report/bound.h"
#include "report/decode/stages.h"
#include "report/decode/text.h"
#include "report/format.h"

namespace attntrace {
namespace {

void FillRun(const RunFacts& facts, Run* run) {
  for (const std::string& word : facts.command) run->add_command(CleanUtf8(word));
  run->set_host(CleanUtf8(facts.host));
  run->set_directory(CleanUtf8(facts.directory));
  run->set_start_unix_ns(facts.start_unix_ns);
  run->set_duration_ns(facts.duration_ns);
  run->set_ended(facts.ended);
  run->set_exit_code(facts.exit_code);
  run->set_signal(facts.signal);
}

void AddBlindSpot(Report* report, const std::string& code, const std::string& text, uint32_t process) {
  BlindSpot* spot = report->add_blind_spots();
  spot->set_code(code);
  spot->set_text(CleanUtf8(text));
  spot->set_process(process);
  spot->set_count(1);
}

void AddUntraced(const std::vector<UntracedProcess>& untraced, Report* report) {
  for (const UntracedProcess& one : untraced) {
    Process* process = report->add_processes();
    process->set_pid(one.pid);
    process->set_rank(-1);
    process->set_local_rank(-1);
    process->set_world_size(-1);
    process->set_ended("unknown");
    process->set_tracing(CleanUtf8(one.reason));
    AddBlindSpot(report, "untraced", absl::StrCat("process ", one.pid, " was not traced: ", one.reason),
                 static_cast<uint32_t>(report->processes_size()) - 1);
  }
}

// The environment of the process that matters most is the report's; the others say where they differ.
void ShareEnvironment(const std::vector<std::map<std::string, std::string>>& facts, size_t chosen, Report* report) {
  if (facts.empty()) return;
  FillEnvironment(facts[chosen], report->mutable_environment());
  for (size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].empty()) continue;  // one that ended before its environment was read differs in nothing we know
    auto* settings = report->mutable_processes(static_cast<int>(i))->mutable_settings();
    for (const auto& [key, value] : facts[i]) {
      const auto same = facts[chosen].find(key);
      if (same == facts[chosen].end() || same->second != value) (*settings)[key] = value;
    }
  }
}

struct Candidate {
  SpoolIdentity identity;
  std::string path;
};

bool IsReplaced(const Candidate& one, const std::vector<Candidate>& all) {
  return std::any_of(all.begin(), all.end(), [&](const Candidate& other) {
    return other.identity.pid == one.identity.pid && other.identity.start_ticks == one.identity.start_ticks &&
           other.identity.start_realtime_ns > one.identity.start_realtime_ns;
  });
}

}  // namespace

absl::StatusOr<Report> DecodeSpools(const std::vector<std::string>& spool_files, const RunFacts& run) {
  Report report;
  report.set_format_version(kReportFormatVersion);
  report.set_producer(kProducer);
  FillRun(run, report.mutable_run());

  std::vector<Candidate> candidates;
  std::vector<absl::Status> unusable;
  for (const std::string& path : spool_files) {
    const absl::StatusOr<SpoolIdentity> identity = PeekSpool(path);
    if (identity.ok()) {
      candidates.push_back({*identity, path});
    } else {
      unusable.push_back(identity.status());
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.identity.start_realtime_ns, a.identity.pid, a.path) <
           std::tie(b.identity.start_realtime_ns, b.identity.pid, b.path);
  });

  Interner interner(&report);
  Symboliser symboliser;
  std::vector<std::map<std::string, std::string>> environments;
  size_t chosen = 0;
  uint64_t chosen_calls = 0;
  for (const Candidate& candidate : candidates) {
    const absl::StatusOr<Spool> spool = Spool::Open(candidate.path);
    if (!spool.ok()) {  // gone or replaced since it was peeked into
      unusable.push_back(spool.status());
      continue;
    }
    const Definitions definitions(*spool);
    const ProcessContext context{*spool, definitions, static_cast<uint32_t>(report.processes_size()), report.run().directory(),
                                 IsReplaced(candidate, candidates)};
    DecodeProcess(context, report.add_processes());
    const uint64_t calls = DecodeVariants(context, &interner, &symboliser, &report);
    DecodeIncidents(context, &interner, &symboliser, &report);
    DecodeBlindSpots(context, &report);
    environments.push_back(ReadEnvironment(definitions));
    if (chosen_calls == 0 && calls > 0) {
      chosen = context.index;
      chosen_calls = calls;
    }
  }
  if (report.processes_size() == 0 && !unusable.empty()) return unusable.front();

  ShareEnvironment(environments, chosen, &report);
  for (const absl::Status& status : unusable) {
    AddBlindSpot(&report, "spool-unreadable", std::string(status.message()), 0);
  }
  AddUntraced(run.untraced, &report);
  ShareFacts(&report);
  BoundReport(kObservedLimit * static_cast<size_t>(std::max(report.processes_size(), 1)), &report);
  FillTotals(&report);
  return report;
}

}  // namespace attntrace
