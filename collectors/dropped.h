// Exceptions that the program catches and drops, seen at their death: CPython raises no event for a handled exception, and a
// program that swallows attention's error often dies of what is missing afterwards.
//
// The destructors of CPython's own exception classes that attention's errors derive from are wrapped, and what the garbage
// collector calls before them (tp_dealloc, tp_clear): a class that the program defines ends in one of them too. An exception
// without traceback costs a look at a null pointer. Nothing is resurrected and no code of the program's runs.
#pragma once

namespace attntrace {

// Once, with the GIL held and python::Loaded(). Nothing where the classes are not laid out as expected.
void WatchDroppedExceptions() noexcept;

// From now on destructors only destroy. Any thread.
void StopDroppedExceptions() noexcept;

}  // namespace attntrace
