#include "collectors/fault.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "collectors/dispatch.h"
#include "collectors/spool_writer.h"

namespace attntrace {

void CountFault(const char* collector) noexcept {
  static std::atomic<int> faults{0};
  Spool().Add(Counter::kFaults);
  if (faults.fetch_add(1, std::memory_order_relaxed) + 1 != kMaxFaults) return;
  StopDispatch();
  char line[160];
  const int length = snprintf(line, sizeof(line), "attntrace: the %s collector failed %d times and is off; the program runs on\n",
                              collector, kMaxFaults);
  if (length > 0) (void)!write(STDERR_FILENO, line, static_cast<size_t>(length));
  Spool().Note("collector-off", "the dispatch collector failed repeatedly and was switched off; later calls are not counted");
}

}  // namespace attntrace
