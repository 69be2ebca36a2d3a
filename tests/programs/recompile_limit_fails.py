# The recompile limit as an error: fullgraph=True, and nobody catches it. Two calls were fused before.
# requires: torch>=2.10
# timeout: 600
# exit: 1
import torch
from torch.nn.attention.flex_attention import flex_attention

torch._dynamo.config.recompile_limit = 2
compiled = torch.compile(flex_attention, dynamic=False, fullgraph=True)
with torch.no_grad():
    for length in (128, 256, 384):
        compiled(*torch.randn(3, 1, 2, length, 16).unbind())
