# Why flex_attention is not fused, trained. Expected, one finding each, forward and backward:
#   aot_eager      flex-dense: compiled with a backend other than inductor
#   recompiled     flex-fell-back: 2 calls fused before, the guard names the length; peaks grow with the length
#   plain          flex-dense: nothing compiles this path
#   small_heads    flex-dense: heads of 8, which the template does not take; errors of compilation are suppressed
#   refused        the same, not suppressed: it ends the program, and backend-error says how to pad
#   fused          nothing; the kernels are Inductor's templates, forward and backward
# Usage: flex_reasons.py CASE. The last line says the peak that PyTorch saw, for the figures of the report: within 2 %.
import sys

import torch
from torch.nn.attention.flex_attention import flex_attention


def train(attend, length, width=64):
    q, k, v = (torch.randn(1, 8, length, width, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    attend(q, k, v).sum().backward()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


case = sys.argv[1]
if case == "aot_eager":
    peaks = [train(torch.compile(flex_attention, backend="aot_eager"), 2048) for _ in range(2)]
elif case == "recompiled":
    torch._dynamo.config.recompile_limit = 2
    compiled = torch.compile(flex_attention, dynamic=False)
    peaks = [train(compiled, length) for length in (1024, 2048, 3072, 4096)]
elif case == "plain":
    peaks = [train(flex_attention, 4096) for _ in range(2)]
elif case in ("small_heads", "refused"):
    torch._dynamo.config.suppress_errors = case == "small_heads"
    peaks = [train(torch.compile(flex_attention), 2048, width=8) for _ in range(2)]
elif case == "fused":
    compiled = torch.compile(flex_attention)
    peaks = [train(compiled, 4096) for _ in range(3)]
print("peaks", *peaks)
