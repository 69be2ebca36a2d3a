# The same model: attention dropout in training takes the math backend on the CPU, evaluation is fused.
# requires: transformers
import torch
from support import tiny

model, batch = tiny.llama("sdpa", attention_dropout=0.1)
for _ in range(2):
    model(**batch).loss.backward()
model.eval()
with torch.no_grad():
    model(**batch)
