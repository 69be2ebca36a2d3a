# nn.MultiheadAttention: weights asked for by default (scores stored), not asked for (fused), and eval's fast path.
import torch

x = torch.randn(2, 64, 32)
mha = torch.nn.MultiheadAttention(32, 4, batch_first=True).train()
out, _ = mha(x, x, x)
out.sum().backward()
mha(x, x, x, need_weights=False)[0].sum().backward()
mha.eval()
with torch.no_grad():
    mha(x, x, x, need_weights=False)
