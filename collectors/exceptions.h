// What CPython's audit events tell: exceptions that nobody caught, and code that Inductor made (collectors/lowered.h).
//
// Nothing of the program's is run: an exception's arguments are read where they are plain values.
#pragma once

namespace attntrace {

// With the GIL held, inside whatever raised the event; `args` is the event's tuple.
void OnAudit(const char* event, void* args) noexcept;

}  // namespace attntrace
