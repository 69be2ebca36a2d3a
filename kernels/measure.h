// Runs one request: memory of the first run, times of further ones, the backend that ran, the difference to float64 math.
#pragma once

#include "kernels/protocol.h"

namespace attntrace::reference {

// Never throws: refusals, exceptions and out of memory are in the response.
Response Measure(const Request& request) noexcept;

}  // namespace attntrace::reference
