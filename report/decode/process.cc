#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "report/decode/stages.h"

namespace attntrace {
namespace {

using spool::Header;
using spool::State;

// Alive with the same start time, so that a pid used again since is not taken for it.
bool IsRunning(const Header& header) {
  std::ifstream stat(absl::StrCat("/proc/", header.pid, "/stat"));
  std::string line;
  if (!std::getline(stat, line)) return false;
  const size_t name_end = line.rfind(')');  // the name may hold spaces and parentheses
  if (name_end == std::string::npos) return false;
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::string_view(line).substr(name_end + 1), ' ', absl::SkipEmpty());
  constexpr size_t kState = 0, kStartTime = 19;  // fields 3 and 22 of proc(5)
  uint64_t start = 0;
  return fields.size() > kStartTime && fields[kState] != "Z" && fields[kState] != "X" &&
         absl::SimpleAtoi(fields[kStartTime], &start) && start == header.start_ticks;
}

void FillMemory(DeviceMemory* memory, std::string device, int64_t peak, int64_t live, uint64_t allocated, uint64_t attributed) {
  memory->set_device(std::move(device));
  memory->set_peak_bytes(peak);
  memory->set_live_bytes(live);
  memory->set_allocated_bytes(allocated);
  // A kill may fall between the two stores of one allocation.
  memory->set_attributed_bytes(std::min(attributed, allocated));
  memory->set_unattributed_bytes(allocated - std::min(attributed, allocated));
}

}  // namespace

void DecodeProcess(const ProcessContext& context, Process* process) {
  const Header& header = context.spool.header();
  process->set_pid(header.pid);
  process->set_parent_pid(header.parent_pid);
  process->set_rank(header.rank);
  process->set_local_rank(header.local_rank);
  process->set_world_size(header.world_size);
  process->set_forked_from(header.forked_from);
  process->set_start_unix_ns(header.start_realtime_ns);

  const State state = header.state.load(std::memory_order_relaxed);
  process->set_ended(state == State::kCleanExit ? "clean"
                     : context.replaced         ? "replaced"
                     : IsRunning(header)        ? "running"
                                                : "died");
  process->set_tracing(state == State::kStarting ? "the agent did not finish starting" : "traced");

  for (size_t i = 0; i < static_cast<size_t>(Counter::kCount); ++i) {
    const auto which = static_cast<Counter>(i);
    CounterValue* counter = process->add_counters();
    counter->set_name(NameOf(which));
    counter->set_value(context.spool.counter(which));
  }

  FillMemory(process->add_devices(), "cpu", static_cast<int64_t>(context.spool.counter(Counter::kCpuPeakBytes)),
             static_cast<int64_t>(context.spool.counter(Counter::kCpuLiveBytes)),
             context.spool.counter(Counter::kCpuAllocatedBytes), context.spool.counter(Counter::kCpuAttributedBytes));
  for (int i = 0; i < spool::kMaxDevices; ++i) {
    const spool::DeviceTotals& totals = header.devices[i];
    const uint64_t allocated = totals.allocated_bytes.load(std::memory_order_relaxed);
    const int64_t peak = totals.peak_bytes.load(std::memory_order_relaxed);
    if (allocated == 0 && peak == 0 && totals.device_bytes.load(std::memory_order_relaxed) == 0) continue;
    FillMemory(process->add_devices(), absl::StrCat("cuda:", i), peak, totals.live_bytes.load(std::memory_order_relaxed),
               allocated, totals.attributed_bytes.load(std::memory_order_relaxed));
    DeviceMemory* memory = process->mutable_devices(process->devices_size() - 1);
    memory->set_reserved_bytes(totals.reserved_bytes.load(std::memory_order_relaxed));
    memory->set_other_bytes(totals.other_bytes.load(std::memory_order_relaxed));
    memory->set_device_bytes(totals.device_bytes.load(std::memory_order_relaxed));
    memory->set_cupti_bytes(totals.cupti_bytes.load(std::memory_order_relaxed));
  }
}

}  // namespace attntrace
