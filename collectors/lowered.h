// Compiled regions whose flex_attention Inductor lowered to its CPU template. The dispatcher sees nothing of such a call: its
// kernel is called straight from generated code. That a region holds one is known from the code, which CPython's "compile"
// audit event shows as it is loaded, from Inductor's cache too; that it runs is known from the region's event. (On CUDA the
// kernels tell: collectors/cupti/.)
#pragma once

#include "collectors/thread_state.h"

namespace attntrace {

// Source text that is about to be compiled; anything but Inductor's own is left alone. Needs the GIL.
void NoteCompiledSource(python::Object* source) noexcept;

// A "Torch-Compiled Region: i/j" starts and ends on this thread, after compiled_depth was raised and before it is lowered.
void BeginLoweredRegion(ThreadState* state, const char* event_name) noexcept;
void EndLoweredRegion(ThreadState* state) noexcept;

}  // namespace attntrace
