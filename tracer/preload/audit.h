// Watching a Python interpreter through PEP 578 audit events: the moment when torch has been imported, and uncaught exceptions.
#pragma once

namespace attntrace::preload {

// Registers the hook if an interpreter is in the process, initialised or not. Called once, before main. False: no interpreter.
bool WatchPython() noexcept;

}  // namespace attntrace::preload
