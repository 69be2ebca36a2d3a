# A small model on the GPU that trains with attention of every dense kind, with dropout elsewhere: prints its losses and the state of
# both random generators, which must not depend on reference runs made in between.
import hashlib
import json

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

torch.use_deterministic_algorithms(True, warn_only=True)
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(64, 192), torch.nn.Dropout(0.1), torch.nn.Linear(192, 192)).cuda().double()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)


def attention(x):
    q, k, v = model(x).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4)
    by_math = sdpa(q, k, v, is_causal=True)  # float64: no fused kernel
    weights = torch.softmax(q @ k.transpose(-2, -1) * 0.25, -1)  # written out
    return by_math + weights @ v


losses = []
for step in range(8):
    x = torch.randn(2, 128, 64, device="cuda", dtype=torch.float64)
    loss = attention(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item().hex())
states = [hashlib.sha256(state.cpu().numpy().tobytes()).hexdigest() for state in (torch.get_rng_state(), torch.cuda.get_rng_state())]
print(json.dumps({"losses": losses, "states": states}))
