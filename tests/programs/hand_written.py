# Attention written by hand, in the forms people write it, forward and backward: every one stores its scores.
import math

import torch
from torch.nn.functional import dropout, softmax

B, H, S, D = 2, 4, 48, 16


def t(*shape):
    return torch.randn(shape, requires_grad=True)


def with_matmul(q, k, v):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(D)
    return torch.matmul(torch.softmax(scores, dim=-1), v)


def with_at_and_bool_mask(q, k, v, mask):
    scores = (q * D**-0.5) @ k.mT
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v


def with_float_mask_and_dropout(q, k, v, bias):
    weights = softmax(q @ k.transpose(2, 3) + bias, dim=-1)
    return dropout(weights, 0.1) @ v


def with_bmm(q, k, v):
    return torch.bmm(softmax(torch.bmm(q, k.transpose(1, 2)), dim=-1), v)


def with_baddbmm(q, k, v, bias):
    scores = torch.baddbmm(bias, q, k.transpose(1, 2), beta=1.0, alpha=D**-0.5)
    return torch.bmm(scores.softmax(dim=-1), v)


def with_einsum(q, k, v):
    weights = torch.einsum("bihd,bjhd->bhij", q, k).softmax(dim=-1)
    return torch.einsum("bhij,bjhd->bihd", weights, v)


def with_casts(q, k, v):
    scores = torch.matmul(q, k.transpose(-1, -2)) * D**-0.5
    return softmax(scores, dim=-1, dtype=torch.float32).to(v.dtype) @ v


def multi_query(q, k, v):
    scores = torch.einsum("bhid,bjd->bhij", q, k) * D**-0.5
    return torch.einsum("bhij,bjd->bhid", scores.softmax(-1), v)


mask = torch.ones(S, S, dtype=torch.bool).tril()
with_matmul(t(B, H, S, D), t(B, H, S, D), t(B, H, S, D)).sum().backward()
with_at_and_bool_mask(t(B, H, S, D), t(B, H, S, D), t(B, H, S, D), mask).sum().backward()
with_float_mask_and_dropout(t(B, H, S, D), t(B, H, S, D), t(B, H, S, D), torch.zeros(S, S)).sum().backward()
with_bmm(t(B, S, D), t(B, S, D), t(B, S, D)).sum().backward()
with_baddbmm(t(B, S, D), t(B, S, D), t(B, S, D), torch.zeros(B, S, S)).sum().backward()
with_einsum(t(B, S, H, D), t(B, S, H, D), t(B, S, H, D)).sum().backward()
with_casts(*(t(B, H, S, D).bfloat16() for _ in "qkv")).sum().backward()
multi_query(t(B, H, S, D), t(B, S, D), t(B, S, D)).sum().backward()
