"""Attends until it is killed, and says after each call how many there were."""
import itertools

import torch

x = torch.randn(1, 2, 16, 8)
for count in itertools.count(1):
    torch.nn.functional.scaled_dot_product_attention(x, x, x)
    print(count, flush=True)
