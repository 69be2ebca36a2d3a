# A compiled model whose own configuration selects eager, as a wrapper's may, while its layers' select sdpa: no frame tells which layers
# the compiled region inlined, so eager is not taken for what they asked for. In the second run all of them agree.
# requires: transformers>=5
# timeout: 240
import copy

import torch
from support import tiny

model, batch = tiny.llama("sdpa")
inside = model.config
around = copy.copy(inside)
around._attn_implementation = "eager"
for config in (around, inside):
    model.config = config
    with torch.no_grad():
        torch.compile(model.eval(), backend="eager")(input_ids=batch["input_ids"], use_cache=False)
    torch._dynamo.reset()
