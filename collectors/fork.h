// fork without exec: the child must not touch its parent's spool, and gets one of its own once it calls attention.
#pragma once

namespace attntrace {

// Registers the handlers. Before fork our locks are taken, so that none is held by a thread that the child does not have.
void WatchForks() noexcept;

// At the start of an attention call: in a forked child, its own spool. Costs a load elsewhere.
void AttachAfterFork() noexcept;

}  // namespace attntrace
