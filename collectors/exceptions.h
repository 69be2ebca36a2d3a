// What CPython's audit events tell: exceptions that nobody caught, and code that Inductor made (collectors/lowered.h); and what
// becomes of an exception that dropped.h sees die.
//
// Nothing of the program's is run: an exception's arguments are read where they are plain values.
#pragma once

#include <cstdint>

namespace attntrace {

// With the GIL held, inside whatever raised the event; `args` is the event's tuple.
void OnAudit(const char* event, void* args) noexcept;

// An exception that the program caught, at its death, and not told before: kept where attention may be concerned. What
// RecordIncident returned; 0 where attention is not concerned. With the GIL held, nothing pending, and the object out of the
// garbage collector's sight.
uint32_t RecordDropped(void* exception);

// Whether the exception was told of while it lived; once. Needs the GIL.
bool ForgetTold(void* exception) noexcept;

}  // namespace attntrace
