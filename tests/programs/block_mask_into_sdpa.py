# A BlockMask goes into layers that selected sdpa: the second story's obvious repair, and what each Transformers raises of it.
# requires: transformers
# with: base transformers-4.56 transformers-4.48
# exit: 1
import torch
from support import tiny
from torch.nn.attention.flex_attention import create_block_mask

model, batch = tiny.llama("sdpa")
mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 32, 32, device="cpu")
with torch.no_grad():
    model(input_ids=batch["input_ids"], attention_mask=mask)
