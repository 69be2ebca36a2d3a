#include "collectors/cupti/tickets.h"

#include <atomic>

#include "collectors/cupti/gpu_time.h"
#include "collectors/spool_writer.h"

namespace attntrace {
namespace {

// Correlation ids count up over all calls into CUDA, so an entry lives for kLaunches calls; records are flushed every second.
constexpr uint32_t kLaunches = 1u << 19, kTickets = 1u << 17;

std::atomic<uint64_t> g_launches[kLaunches];  // correlation id << 32 | ticket, 0 none

// A call. Time that comes before its variant is known waits here.
struct Ticket {
  std::atomic<uint64_t> owner{0};  // ticket << 32 | slot + 1, 0 unknown yet
  std::atomic<uint64_t> ns{0};
  std::atomic<uint32_t> launches{0};
};
Ticket g_tickets[kTickets];
std::atomic<uint32_t> g_next{1};

uint32_t NewTicket() noexcept {
  uint32_t number = g_next.fetch_add(1, std::memory_order_relaxed);
  if (number == 0) number = g_next.fetch_add(1, std::memory_order_relaxed);
  Ticket& ticket = g_tickets[number % kTickets];
  ticket.owner.store(uint64_t{number} << 32);
  ticket.ns.store(0);
  ticket.launches.store(0);
  return number;
}

// Both sides come here after they have stored theirs, in one order for all: the one that comes last finds what the other left.
void HandOver(Ticket* ticket) noexcept {
  const auto slot = static_cast<uint32_t>(ticket->owner.load());
  if (slot == 0) return;
  const uint32_t launches = ticket->launches.exchange(0);
  AddTime(slot - 1, ticket->ns.exchange(0), launches);
}

}  // namespace

void AddTime(uint32_t slot, uint64_t ns, uint64_t launches) noexcept {
  if (slot >= spool::kMaxVariants || (ns == 0 && launches == 0)) return;
  spool::VariantCounters& counters = Spool().counters(slot);
  counters.device_ns.fetch_add(ns, std::memory_order_relaxed);
  counters.timed_launches.fetch_add(launches, std::memory_order_relaxed);
  Spool().Add(Counter::kGpuNsAttributed, ns);
}

void AddLaunchTime(uint32_t correlation, uint64_t ns) noexcept {
  std::atomic<uint64_t>& launch = g_launches[correlation % kLaunches];
  uint64_t seen = launch.load();
  if (seen >> 32 != correlation || static_cast<uint32_t>(seen) == 0) return;  // no launch of attention
  launch.compare_exchange_strong(seen, 0);
  const auto number = static_cast<uint32_t>(seen);
  Ticket& ticket = g_tickets[number % kTickets];
  if (ticket.owner.load() >> 32 != number) {
    Spool().Add(Counter::kGpuLaunchesLost);
    return;
  }
  ticket.ns.fetch_add(ns);
  ticket.launches.fetch_add(1);
  HandOver(&ticket);
}

void TimeLaunch(uint32_t* ticket, uint32_t correlation) noexcept {
  if (*ticket == 0) *ticket = NewTicket();
  const uint64_t former = g_launches[correlation % kLaunches].exchange(uint64_t{correlation} << 32 | *ticket);
  if (former != 0) Spool().Add(Counter::kGpuLaunchesLost);
}

void SettleTicket(uint32_t number, uint32_t slot) noexcept {
  if (number == 0) return;
  Ticket& ticket = g_tickets[number % kTickets];
  uint64_t expected = uint64_t{number} << 32;
  if (!ticket.owner.compare_exchange_strong(expected, expected | (slot + 1))) return;  // forgotten meanwhile
  HandOver(&ticket);
}

}  // namespace attntrace
