# What a launch costs the thread that makes it: ns of a small operator in place, of one that allocates, and of a small linear layer
# forward and backward; of each the fastest of some short bursts, whenever it is told to: see support.py.
import time

import torch
from support import turns


def fastest(work, times, bursts=6):
    best = float("inf")
    for _ in range(bursts):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(times):
            work()
        best = min(best, (time.perf_counter_ns() - start) / times)
    return best


q = torch.ones(1, 2, 64, 64, device="cuda", dtype=torch.bfloat16)
for _ in range(500):  # the window in which kernels are named closes
    torch.nn.functional.scaled_dot_product_attention(q, q, q)
x, one = torch.zeros(8, device="cuda"), torch.ones(8, device="cuda")
layer, batch = torch.nn.Linear(8, 8, device="cuda"), torch.ones(2, 8, device="cuda", requires_grad=True)
turns(lambda: {"in place": fastest(lambda: x.add_(one), 200), "allocating": fastest(lambda: x + one, 200),
               "linear, forward and backward": fastest(lambda: layer(batch).sum().backward(), 50)}, warm=3)
