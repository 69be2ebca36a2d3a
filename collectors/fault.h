// The one wrapper around every entry from outside: nothing escapes, each fault is counted, and a collector that keeps failing is
// switched off with one line.
#pragma once

#include <utility>

namespace attntrace {

// Counts a fault of `collector`; after kMaxFaults it is switched off and the report says so.
inline constexpr int kMaxFaults = 20;
void CountFault(const char* collector) noexcept;

template <typename Result, typename Body>
Result Guarded(const char* collector, Result otherwise, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    CountFault(collector);
    return otherwise;
  }
}

}  // namespace attntrace
