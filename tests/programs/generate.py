# Text generation with a growing cache: many lengths of Sk, one call site, a bounded number of variants.
# requires: transformers
import torch
from support import tiny

model, batch = tiny.llama("sdpa")
model.eval()
with torch.no_grad():
    model.generate(batch["input_ids"][:1, 1:9], max_new_tokens=24, do_sample=False, pad_token_id=0)
