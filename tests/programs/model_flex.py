# A Llama model that asked for flex_attention, forward only (a CPU has no backward of it).
# requires: transformers
# with: base transformers-4.56 transformers-4.48
# timeout: 400
import torch
from support import tiny

model, batch = tiny.llama("flex_attention")
with torch.no_grad():
    model.eval()(**batch)
