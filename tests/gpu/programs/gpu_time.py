# Device time of each way of attention, forward and backward apart, and of a graph. PROFILE=1 prints what torch.profiler counts, as one
# JSON line: {name: {phase: [kernels, ns]}}. Both runs launch the same.
import json
import os

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention as sdpa

CALLS = 30
profiled = os.environ.get("PROFILE") == "1"
q, k, v = (torch.randn(4, 16, 2048, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3))
grad = torch.randn_like(q)
found = {}


def measured(name, phase, run):
    torch.cuda.synchronize()
    if not profiled:
        run()
        torch.cuda.synchronize()
        return
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        run()
        torch.cuda.synchronize()
    kernels = [e for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA and not e.name.startswith(("Memcpy", "Memset"))]
    found.setdefault(name, {})[phase] = [len(kernels), sum(e.device_time for e in kernels) * 1000]


def way(name, call):
    outs = []
    call(outs)
    torch.autograd.grad(outs.pop(), (q, k, v), grad)  # warm: compiled, planned
    measured(name, "forward", lambda: [call(outs) for _ in range(CALLS)])
    measured(name, "backward", lambda: [torch.autograd.grad(out, (q, k, v), grad) for out in outs])


def pinned(backend, name, call):
    with sdpa_kernel(backend):
        way(name, call)


compiled = torch.compile(flex_attention)
pinned(SDPBackend.FLASH_ATTENTION, "flash", lambda outs: outs.append(sdpa(q, k, v)))  # flash
pinned(SDPBackend.EFFICIENT_ATTENTION, "efficient", lambda outs: outs.append(sdpa(q, k, v)))  # efficient
pinned(SDPBackend.CUDNN_ATTENTION, "cudnn", lambda outs: outs.append(sdpa(q, k, v)))  # cudnn
pinned(SDPBackend.MATH, "math", lambda outs: outs.append(sdpa(q, k, v)))  # math
way("flex-triton", lambda outs: outs.append(compiled(q, k, v)))  # flex-triton
with torch.no_grad(), sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        sdpa(q, k, v, is_causal=True)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        sdpa(q, k, v, is_causal=True)  # graph
    measured("graph", "forward", lambda: [graph.replay() for _ in range(CALLS)])
print(json.dumps(found))
