# A compiled function that leaves the graph for a library's own, disabled one, which calls flex_attention plainly: the place is told.
import torch
from torch.nn.attention.flex_attention import flex_attention


@torch.compiler.disable
def library(q):
    return flex_attention(q, q, q)


def attend(q):
    return library(q * 2)


with torch.no_grad():
    torch.compile(attend, backend="eager")(torch.randn(1, 2, 128, 16))
