// Variants put together into what a table shows: one row a call site and forward backend, with its backward and recompute
// beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/report.pb.h"

namespace attntrace {

// What ran in one phase of a row. Empty where nothing did.
struct PhaseCell {
  struct Ran {
    std::string backend, path;
    bool operator==(const Ran&) const = default;
  };
  std::vector<Ran> ran;  // without repeats; more than one only where a row's backward or recompute went different ways
  uint64_t calls = 0;
  int64_t peak_bytes = 0;  // highest
  uint64_t device_ns = 0;
};

struct SiteRow {
  const Variant* example;  // its path and module name the row
  PhaseCell forward, backward, recompute;
};

// In the order of the first call, then of ids; rows of one call site stand together.
std::vector<SiteRow> CallSiteRows(const Report& report);

}  // namespace attntrace
