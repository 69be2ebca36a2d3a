# Nested tensors of the strided layout, inference: math, component by component.
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

with torch.no_grad():
    x = torch.nested.nested_tensor([torch.randn(4, length, 16) for length in (17, 33, 5)])
    sdpa(x, x, x)
