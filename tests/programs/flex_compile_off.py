# torch.compile is switched off for the process: what is compiled runs as it is written.
# requires: torch>=2.10
# env: TORCHDYNAMO_DISABLE=1
import torch
from torch.nn.attention.flex_attention import flex_attention

with torch.no_grad():
    torch.compile(flex_attention)(*torch.randn(3, 1, 2, 128, 16).unbind())
