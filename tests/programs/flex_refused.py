# Calls that flex_attention's kernel for a CPU does not take: one runs its reference, as errors of compilation are suppressed, then
# one ends the program.
# requires: torch>=2.10
# timeout: 400
# exit: 1
import torch
from torch.nn.attention.flex_attention import flex_attention

q, k, v = (torch.randn(1, 2, 128, 16, dtype=torch.float64) for _ in range(3))
with torch.no_grad():
    torch._dynamo.config.suppress_errors = True
    torch.compile(flex_attention)(q, k, v)
    torch._dynamo.config.suppress_errors = False
    torch._dynamo.reset()
    torch.compile(flex_attention)(q, k, v)
