# Attention with and without dropout; CUDNN=0 leaves cuDNN out.
import os

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

torch.backends.cuda.enable_cudnn_sdp(os.environ.get("CUDNN") != "0")
q, k, v = (torch.randn(2, 8, 1024, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3))
for _ in range(5):
    sdpa(q, k, v).sum().backward()  # without
    sdpa(q, k, v, dropout_p=0.1).sum().backward()  # with
torch.cuda.synchronize()
