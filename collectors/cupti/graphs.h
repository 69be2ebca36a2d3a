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

// CUPTI's own number of a node, which its records have; looked up by `id_of` (cuptiGetGraphNodeId) as nodes come. Null: not
// wanted.
void NumberNodes(int (*id_of)(void* node, uint64_t* id)) noexcept;
// The variant of the call that made the node of this number; kMaxVariants where it is none.
uint32_t SlotOfNode(uint64_t id) noexcept;

}  // namespace attntrace
