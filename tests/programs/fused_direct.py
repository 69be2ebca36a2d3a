# Fused operators called by name, without scaled_dot_product_attention.
import torch

q, k, v = (torch.randn(1, 4, 64, 16, requires_grad=True) for _ in range(3))
out = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v)[0]
out.sum().backward()
with torch.no_grad():
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, is_causal=True)
torch.ops.aten._scaled_dot_product_attention_math(q, k, v)[0].sum().backward()
