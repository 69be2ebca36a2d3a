// The CUDA kernels of a variant, as its newest watched call launched them.
#pragma once

#include <cstdint>

#include "report/decode/definitions.h"
#include "report/report.pb.h"

namespace attntrace {

void FillKernels(const Definitions& definitions, uint32_t slot, const spool::VariantCounters& counters, Variant* variant);

}  // namespace attntrace
