# Attention maps asked for, of an eager model (they come, and cost the scores) and of an sdpa model.
# requires: transformers>=5
import torch
from support import tiny

eager, batch = tiny.llama("eager")
eager(**batch, output_attentions=True).loss.backward()
fused, batch = tiny.llama("sdpa")
with torch.no_grad():
    fused(**batch, output_attentions=True)
