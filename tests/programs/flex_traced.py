# Dynamo traces flex_attention with fake tensors first: that is no call. What runs afterwards (backend "eager") is.
# timeout: 240
import torch
from torch.nn.attention.flex_attention import flex_attention

compiled = torch.compile(flex_attention, backend="eager")
q, k, v = (torch.randn(1, 2, 128, 16) for _ in range(3))
with torch.no_grad():
    for _ in range(3):
        compiled(q, k, v)
