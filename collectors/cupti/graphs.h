// CUDA graphs: nodes that an attention call made while it was captured, and what each launch of the graph runs again.
//
// Called from CUPTI callbacks, on any thread; a lock of this file is held for look-ups only.
#pragma once

#include <cstdint>

#include "collectors/cupti/abi.h"

namespace attntrace {

// A number for a call that is being captured; its variant is known only when it ends.
uint64_t NewCapture() noexcept;
void NameCapture(uint64_t token, uint32_t slot) noexcept;

// `token` of the call that the thread has open, 0 for none.
void OnGraphResource(uint32_t callback, const cupti::GraphData& data, uint64_t token) noexcept;
void OnGraphLaunch(void* executable) noexcept;

}  // namespace attntrace
