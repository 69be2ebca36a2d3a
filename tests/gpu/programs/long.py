# (1, 8, 4096, 64) bf16: math pinned, and flex_attention not compiled. With "statistics": what these and their fused twins take by
# torch.cuda, over the start: of a first call as a user makes it, and of a second one with all that stays warm.
import gc
import json
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention as sdpa

q, k, v = (torch.randn(1, 8, 4096, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3))


def math():
    with sdpa_kernel(SDPBackend.MATH):
        return sdpa(q, k, v)


def cudnn():
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return sdpa(q, k, v, is_causal=True)


def peak(work):
    gc.collect()  # what an earlier call left in cycles would be freed in the middle, and be missing of the peak
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    start = torch.cuda.memory_allocated()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - start


def first(call):
    def work():
        call().sum().backward()

    result = peak(work)
    q.grad = k.grad = v.grad = None
    return result


def again(call):
    def work():
        out = call()
        torch.autograd.grad(out, (q, k, v), torch.randn_like(out))

    work()
    return peak(work)


if sys.argv[1:] == ["statistics"]:
    compiled = torch.compile(flex_attention)
    calls = {"math": math, "cudnn, causal": cudnn, "flex-dense": lambda: flex_attention(q, k, v),
             "flex-compiled": lambda: compiled(q, k, v)}
    firsts = {name: first(call) for name, call in calls.items() if name != "flex-compiled"}
    first(calls["flex-compiled"])  # compiles, and autotunes
    firsts["flex-compiled"] = first(calls["flex-compiled"])
    print(json.dumps({"first": firsts, "again": {name: again(call) for name, call in calls.items()}}))
else:
    for call in (math, lambda: flex_attention(q, k, v)):
        call().sum().backward()
