# A bool mask that eager adds to its scores, and so masks nothing; the same mask under sdpa is right, and a float one under eager too.
# requires: transformers>=5
import torch
from support import tiny

length = 32
allowed = torch.ones(length, length, dtype=torch.bool).tril()[None, None].expand(2, 1, length, length)
hidden = torch.zeros(2, 1, length, length).masked_fill(~allowed, torch.finfo(torch.float32).min)
with torch.no_grad():
    for attention, mask in (("eager", allowed), ("sdpa", allowed), ("eager", hidden)):
        model, batch = tiny.llama(attention)
        model(input_ids=batch["input_ids"], attention_mask=mask)
