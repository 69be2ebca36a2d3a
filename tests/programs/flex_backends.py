# flex_attention compiled with backends that have no fused lowering.
import torch
from torch.nn.attention.flex_attention import flex_attention

q = torch.randn(1, 2, 128, 16)
with torch.no_grad():
    torch.compile(flex_attention, backend="eager")(q, q, q)
    torch.compile(flex_attention, backend="aot_eager")(q, q, q)
