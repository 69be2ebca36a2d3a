// Backward of dense attention inside a compiled function (torch.compile with "aot_eager" and the like): one autograd node computes the
// gradients of all that the function holds, in steps that name nothing. That scores are stored there is seen by the blocks of
// their size that the node allocates.
//
// On the node's thread. What of it is fused has events or kernels of its own, see backward.cc and cupti/past_dispatcher.h.
#pragma once

#include "collectors/thread_state.h"

namespace attntrace {

void BeginCompiledDense(ThreadState* state, const BackwardNode& node);
// At the end of any node.
void EndCompiledDense(ThreadState* state);

}  // namespace attntrace
