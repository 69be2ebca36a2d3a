# The recompute of a checkpoint runs under another backend than its forward did.
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch.utils.checkpoint import checkpoint

x = torch.randn(1, 4, 32, 16, requires_grad=True)
with sdpa_kernel(SDPBackend.MATH):
    out = checkpoint(lambda x: sdpa(x, x * 2, x * 3), x, use_reentrant=True)
out.sum().backward()
