# What would have to be compiled anew: run as it is under one stance, an error that nobody catches under another.
# requires: torch>=2.10
# timeout: 600
# exit: 1
import torch
from torch.nn.attention.flex_attention import flex_attention

compiled = torch.compile(flex_attention, dynamic=False)
with torch.no_grad():
    compiled(*torch.randn(3, 1, 2, 128, 16).unbind())
    with torch.compiler.set_stance("eager_on_recompile"):
        compiled(*torch.randn(3, 1, 2, 256, 16).unbind())
    with torch.compiler.set_stance("fail_on_recompile"):
        compiled(*torch.randn(3, 1, 2, 384, 16).unbind())
