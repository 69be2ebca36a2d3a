# Attention maps asked for in the config of an sdpa model: they are None, without a word.
# requires: transformers>=5
import torch
from support import tiny

model, batch = tiny.llama("sdpa")
model.config._output_attentions = True
with torch.no_grad():
    print(model(**batch).attentions)
