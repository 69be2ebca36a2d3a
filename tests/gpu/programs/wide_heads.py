# Training with a few heads of 512: no fused kernel takes grouped heads of that size.
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

q = torch.randn(1, 8, 1024, 512, dtype=torch.bfloat16, device="cuda", requires_grad=True)
k, v = (torch.randn(1, 2, 1024, 512, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(2))
for _ in range(5):
    sdpa(q, k, v, is_causal=True, enable_gqa=True).sum().backward()  # grouped
repeated = [t.repeat_interleave(4, 1).detach().requires_grad_() for t in (k, v)]
for _ in range(5):
    sdpa(q, *repeated, is_causal=True).sum().backward()  # repeated
torch.cuda.synchronize()
