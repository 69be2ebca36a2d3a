# Run as `python -m`-style code and through a shell: the user's line is found all the same.
# through: sh -c
import torch

x = torch.randn(1, 2, 16, 8, requires_grad=True)
torch.nn.functional.scaled_dot_product_attention(x, x, x).sum().backward()
