# Backends chosen with sdpa_kernel: math on purpose, and flash where it can run.
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

q, k, v = (torch.randn(1, 4, 64, 16, requires_grad=True) for _ in range(3))
with sdpa_kernel(SDPBackend.MATH):
    sdpa(q, k, v).sum().backward()
with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    sdpa(q, k, v).sum().backward()
