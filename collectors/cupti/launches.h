// Kernel launches and the calls they belong to.
//
// A launch belongs to what its thread has open: an attention call, else the backward of one, else the step of hand-written attention
// that runs. A fused attention kernel that finds none of these was launched past the dispatcher: see past_dispatcher.h.
#pragma once

#include "collectors/thread_state.h"

namespace attntrace {

// The preload's CUPTI hook: inside a CUDA call of the program's, so it calls neither CUDA, CUPTI nor Python.
void OnCupti(int domain, uint32_t callback, const void* data) noexcept;

// Something begins on a device (a memory space) whose kernels are to be collected. `key` is the same for all instances of a kind.
void StartKernels(ThreadState* state, KernelSet* kernels, int space, uint64_t key) noexcept;
// It began earlier, and only now is known to be worth it.
void WantKernels(ThreadState* state, KernelSet* kernels, int space, uint64_t key) noexcept;
// If a CUDA graph captures what the thread does on that device, what is open is told apart in the graph.
void NoteCapture(KernelSet* kernels, int space) noexcept;
// It ended and is counted in this slot.
void FinishKernels(ThreadState* state, const KernelSet& kernels, uint32_t slot) noexcept;
// Its kernels, as one launch each of `kernel`, seen (observed) or known from an earlier instance.
void CountLaunches(uint32_t slot, const KernelSet& kernels, bool whole) noexcept;

// Kinds of call that this thread still wants whole instances of.
bool LacksKernels(ThreadState* state, uint64_t key) noexcept;

}  // namespace attntrace
