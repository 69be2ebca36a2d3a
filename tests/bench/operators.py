"""Nanoseconds of processor time a call, as JSON: an operator that is not attention, an attention call of a known variant, an allocation,
and a small layer forward and backward."""
import json
import statistics
import time

import torch

torch.set_num_threads(1)
a = torch.ones(8)
x = torch.randn(1, 2, 16, 16)
sdpa = torch.nn.functional.scaled_dot_product_attention


def ns_per_call(call, calls, batches=40):
    for _ in range(calls):
        call()
    times = []
    for _ in range(batches):
        start = time.process_time_ns()
        for _ in range(calls):
            call()
        times.append((time.process_time_ns() - start) / calls)
    # Processor time, lower quartile: what the machine's other work adds is never negative.
    return statistics.quantiles(times, n=4)[0]


layer, batch = torch.nn.Linear(8, 8), torch.ones(2, 8, requires_grad=True)
with torch.no_grad():
    figures = {
        "operator": ns_per_call(lambda: torch.add(a, a, out=a), 5000),
        "attention": ns_per_call(lambda: sdpa(x, x, x), 1000),
        "allocation": ns_per_call(lambda: torch.empty(64), 5000),
    }
figures["layer"] = ns_per_call(lambda: layer(batch).sum().backward(), 200)
print(json.dumps(figures))
