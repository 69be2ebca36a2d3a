# A compiled flex_attention that a stance, and then its own debug switch, keep from being compiled.
# requires: torch>=2.10
import torch
from torch.nn.attention import flex_attention as flex

q = torch.randn(1, 2, 128, 16)
compiled = torch.compile(flex.flex_attention)
with torch.no_grad():
    with torch.compiler.set_stance("force_eager"):
        compiled(q, q, q)
    flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    flex.flex_attention(q, q, q)
