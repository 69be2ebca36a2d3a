# A second derivative: refused by the fused kernel (the program catches it), computed under math.
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention as sdpa

q, k, v = (torch.randn(2, 2, 32, 16, requires_grad=True) for _ in range(3))
try:
    torch.autograd.grad(sdpa(q, k, v).sum(), q, create_graph=True)[0].pow(2).sum().backward()
except RuntimeError as error:
    print("refused:", "derivative" in str(error))
with sdpa_kernel(SDPBackend.MATH):
    torch.autograd.grad(sdpa(q, k, v).sum(), q, create_graph=True)[0].pow(2).sum().backward()
