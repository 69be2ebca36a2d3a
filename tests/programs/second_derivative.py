# A gradient penalty through the fused kernel: nobody catches what that raises.
# exit: 1
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

q, k, v = (torch.randn(2, 2, 32, 16, requires_grad=True) for _ in range(3))
gradient = torch.autograd.grad(sdpa(q, k, v).sum(), q, create_graph=True)[0]
gradient.pow(2).sum().backward()
