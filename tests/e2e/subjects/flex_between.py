# flex_attention that nothing compiles, with a causal block mask, and ordinary operators between its calls.
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

q, k, v = (torch.randn(1, 2, 256, 16) for _ in range(3))
causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device="cpu")
for _ in range(3):
    flex_attention(q, k, v, block_mask=causal)
    for _ in range(50):
        torch.ones(3).sum()
