# A pinned kernel that cannot take dropout: nobody catches it.
# exit: 1
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

q = torch.randn(1, 2, 64, 16)
with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    sdpa(q, q, q, dropout_p=0.1)
