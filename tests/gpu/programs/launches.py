# What a launch costs the thread that makes it: ns of a small operator in place, of one that allocates, and of a small linear layer
# forward and backward; the fastest of many short bursts, so that a busy host adds little. One JSON line.
import json
import time

import torch


def fastest(work, times=200, bursts=60):
    for _ in range(times):
        work()
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
print(json.dumps({"in place": fastest(lambda: x.add_(one)), "allocating": fastest(lambda: x + one),
                  "linear, forward and backward": fastest(lambda: layer(batch).sum().backward(), times=50)}))
