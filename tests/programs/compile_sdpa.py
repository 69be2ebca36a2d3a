# A model compiled with backend "eager": its attention runs inside a compiled region and is called twice.
# timeout: 240
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(32, 96)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 16)).permute(2, 0, 3, 1, 4)
        return sdpa(q, k, v, is_causal=True)


model = torch.compile(Model(), backend="eager")
for _ in range(2):
    model(torch.randn(2, 24, 32)).sum().backward()
