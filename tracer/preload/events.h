// PyTorch's making of events, as the preload defines it in front of libtorch_cpu and calls it behind.
//
// With any callback registered, PyTorch makes an event of every operator and every autograd node: it boxes the arguments and
// builds the node's name twice. An agent that knows beforehand that an event is of no interest to anybody says so here, and it
// is never made. The same four functions with the same mangled names in every PyTorch from 2.6 to 2.15; their use of registers
// and stack is that of x86-64, elsewhere PyTorch's own are used.
#pragma once

#include <cstdint>

namespace attntrace::preload {

// How often at::addGlobalCallback was called, by anybody: who sees another than its own must let every event through.
const uint32_t* GlobalCallbacksAdded() noexcept;

}  // namespace attntrace::preload
