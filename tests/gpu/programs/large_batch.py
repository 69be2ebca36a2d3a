# A batch beyond the 65,535 of a grid's second and third axis, in the backend of the first argument, forward and backward.
# The second is the batch.
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

q, k, v = (torch.randn(int(sys.argv[2]), 8, 4, 64, dtype=torch.float16, device="cuda", requires_grad=True) for _ in range(3))
with sdpa_kernel(getattr(SDPBackend, sys.argv[1])):
    out = sdpa(q, k, v)  # large
    out.sum().backward()
torch.cuda.synchronize()
