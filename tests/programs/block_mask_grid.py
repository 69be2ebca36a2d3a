# create_block_mask on the full grid, three times from one line: no call of attention, and a finding all the same.
import torch
from torch.nn.attention.flex_attention import create_block_mask


def causal(b, h, q, k):
    return q >= k


def after_sums(b, h, q, k):
    for _ in range(100):
        q.sum()
    return q >= k


for _ in range(3):
    create_block_mask(causal, None, None, 2048, 2048, device="cpu")
create_block_mask(causal, None, None, 512, 512, device="cpu")  # too small to speak of
create_block_mask(after_sums, None, None, 512, 512, device="cpu")
