# A pinned backend that cannot run: the program catches the error and goes on.
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

q, k, v = (torch.randn(1, 2, 64, 16) for _ in range(3))
try:
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        sdpa(q, k, v, dropout_p=0.1)
except RuntimeError as error:
    print("refused:", str(error).splitlines()[0])
sdpa(q, k, v)
