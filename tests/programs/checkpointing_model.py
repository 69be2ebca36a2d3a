# Transformers' own gradient checkpointing: each layer's attention is seen in forward, recompute and backward.
# requires: transformers
from support import tiny

model, batch = tiny.llama("sdpa")
model.gradient_checkpointing_enable()
for _ in range(2):
    model(**batch).loss.backward()
