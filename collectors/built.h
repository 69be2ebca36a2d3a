// Where modules were built whose configuration selects no attention implementation.
//
// Seen where their weights are drawn: the stack then holds each __init__ under way, with the module in it and the configuration
// it was given. Only reads; a bounded table.
#pragma once

#include <cstdint>

#include "collectors/python_api.h"

namespace attntrace {

// Weights are drawn on this stack (innermost first, strong references held by the caller). Needs the GIL. Whether a module was
// in the making.
bool NoteBuilt(python::Object* const* frames, int count) noexcept;

// kPath id: what built this module. 0 where that was not seen. Needs the GIL.
uint32_t BuiltAt(python::Object* module) noexcept;

}  // namespace attntrace
