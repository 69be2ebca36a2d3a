# A whole training run whose random numbers, losses and weights are printed to the last bit. Its output is compared with that
# of the same program untraced by check_transparency.py.
# requires: transformers
import torch
from support import tiny

model, batch = tiny.llama("sdpa", attention_dropout=0.1)
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(5):
    loss = model(**batch).loss
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    print(step, loss.item().hex())
print("random", torch.random.get_rng_state().sum().item(), torch.rand(1).item().hex())
print("weights", sum(weight.double().sum() for weight in model.parameters()).item().hex())
