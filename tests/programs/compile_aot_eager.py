# Compiled by a backend that keeps PyTorch's own operators: the backward of a dense attention runs inside one node that names nothing,
# and is dense; that of a fused one stays fused; a network without attention has none. In the middle line two calls share a node.
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)


def by_hand(q, k, v):
    return torch.softmax(q @ k.mT / 4, dim=-1) @ v


def twice(q, k, v):
    return by_hand(by_hand(q, k, v), k, v)


def fused(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def network(q, k, v):
    return torch.tanh(F.linear(q, k[0, 0]) + v.mean()) * q[..., :1]


for function in (by_hand, twice, fused, network):
    compiled = torch.compile(function, backend="aot_eager")
    for _ in range(2):
        compiled(*(torch.randn(2, 2, 24, 16, requires_grad=True) for _ in range(3))).sum().backward()
