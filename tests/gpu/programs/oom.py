# Runs out of device memory inside SDPA's math backend.
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

q = torch.randn(8, 64, 65536, 64, dtype=torch.bfloat16, device="cuda")
with sdpa_kernel(SDPBackend.MATH):
    sdpa(q, q, q)
