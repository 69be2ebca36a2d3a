# The first story: the project's own wrapper is compiled, and a Transformers model reaches flex_attention by a path of its own.
# requires: transformers>=5
# timeout: 600
import torch
from support import tiny, vendor_flex
from torch.nn.attention.flex_attention import flex_attention

compiled = torch.compile(flex_attention)
with torch.no_grad():
    for _ in range(2):
        compiled(*torch.randn(3, 1, 2, 128, 16).unbind())
    vendor_flex.register()
    model, batch = tiny.llama("raw_flex")
    model(**batch)
