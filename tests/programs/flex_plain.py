# flex_attention that nothing compiles, with a narrow block mask: dense all the same.
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

q, k, v = (torch.randn(1, 2, 256, 16) for _ in range(3))
window = create_block_mask(lambda b, h, i, j: (i - j).abs() <= 8, None, None, 256, 256, device="cpu")
with torch.no_grad():
    for _ in range(3):
        flex_attention(q, k, v, block_mask=window)
with torch.inference_mode():
    flex_attention(q, k, v)
