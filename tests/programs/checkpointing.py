# Activation checkpointing, reentrant and not: the forward runs again inside the backward, and is a recompute.
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch.utils.checkpoint import checkpoint

x = torch.randn(1, 4, 32, 16, requires_grad=True)


def block(x):
    return sdpa(x, x * 2, x * 3, is_causal=True)  # last: the second kind stops its recompute by throwing out of it


checkpoint(block, x, use_reentrant=True).sum().backward()
checkpoint(block, x, use_reentrant=False).sum().backward()
