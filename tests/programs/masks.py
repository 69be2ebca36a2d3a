# Fused kernels fed Sq x Sk masks: plain causal, all true, padding, and a sliding window that no flag can say.
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

S = 64
q, k, v = (torch.randn(2, 4, S, 16, requires_grad=True) for _ in range(3))
causal = torch.ones(S, S, dtype=torch.bool).tril()
padding = (torch.arange(S) < torch.tensor([[S], [S - 16]]))[:, None, None, :]
window = causal & ~torch.ones(S, S, dtype=torch.bool).tril(-8)

sdpa(q, k, v, attn_mask=causal).sum().backward()
sdpa(q, k, v, attn_mask=torch.ones(S, S, dtype=torch.bool)).sum().backward()
sdpa(q, k, v, attn_mask=padding.expand(2, 1, S, S)).sum().backward()
sdpa(q, k, v, attn_mask=padding & causal).sum().backward()
sdpa(q, k, v, attn_mask=window).sum().backward()
sdpa(q, k, v, attn_mask=torch.zeros(S, S).masked_fill(~causal, float("-inf"))).sum().backward()
sdpa(q, k, v, attn_mask=padding).sum().backward()  # (2, 1, 1, S): not Sq x Sk, so no finding
