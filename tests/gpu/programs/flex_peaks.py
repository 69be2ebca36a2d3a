# What torch.cuda sees of one uncompiled flex_attention with a causal block mask, on the shapes of docs/examples/draft_trainer.py: peak
# of the forward and of the backward, each over what was there before it.
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

length = 4096
q, k, v = (torch.randn(1, 8, length, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, length, length, device="cuda")


def peak(call):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    result = call()
    torch.cuda.synchronize()
    return result, torch.cuda.max_memory_allocated() - before


out, forward = peak(lambda: flex_attention(q, k, v, block_mask=mask))
grad = torch.ones_like(out)
_, backward = peak(lambda: out.backward(grad))
print("peaks", forward, backward)
