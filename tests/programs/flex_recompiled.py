# A compiled flex_attention whose lengths change until the recompile limit: the first two calls are fused, the last two are not.
# timeout: 600
import torch
from torch.nn.attention.flex_attention import flex_attention

setattr(torch._dynamo.config, "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit", 2)
compiled = torch.compile(flex_attention, dynamic=False)
with torch.no_grad():
    for length in (128, 256, 384, 512):
        compiled(*torch.randn(3, 1, 2, length, 16).unbind())
