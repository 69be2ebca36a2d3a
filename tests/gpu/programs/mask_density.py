# Uncompiled flex_attention with a narrow window and with a causal mask on the device: what each keeps of its blocks, and that reading it
# left bits and random numbers alone. Prints both in percent, and a sum over what was computed and drawn.
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

torch.manual_seed(0)
length = 4096
q, k, v = (torch.randn(1, 2, length, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
window = create_block_mask(lambda b, h, i, j: (i - j).abs() <= 8, None, None, length, length, device="cuda")
causal = create_block_mask(lambda b, h, i, j: i >= j, 1, 2, length, length, device="cuda")
with torch.no_grad():
    outputs = [flex_attention(q, k, v, block_mask=window)]  # window
    outputs.append(flex_attention(q, k, v, block_mask=causal))  # causal
    outputs.append(torch.randn(8, device="cuda"))
print(*(f"{100 - mask.sparsity():.3g}" for mask in (window, causal)), sum(x.double().sum().item() for x in outputs).hex())
