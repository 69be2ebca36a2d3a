# torch.profiler before, during and after attention: one JSON line with its device events, session by session.
import json
import sys

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch.profiler import ProfilerActivity, profile, schedule

order = sys.argv[1]  # "first": a session before any attention; "late": attention first
q, k, v = (torch.randn(1, 8, 512, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3))
w = torch.randn(512, 512, device="cuda")
sessions = []


def steps(n):
    for _ in range(n):
        sdpa(q, k, v, is_causal=True).sum().backward()
        torch.mm(w, w)


def events(prof):
    device = [e for e in prof.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return {"device": len(device), "all": len(prof.events()), "names": sorted({e.name for e in device})}


def session(n):
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        steps(n)
        torch.cuda.synchronize()
    sessions.append(events(prof))


if order == "first":
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
        torch.mm(w, w)
        torch.cuda.synchronize()
    sessions.append(events(prof))
else:
    steps(20)
session(5)
steps(20)
session(5)
counted = []
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
             on_trace_ready=lambda p: counted.append(events(p))) as prof:
    for _ in range(8):
        steps(1)
        torch.cuda.synchronize()
        prof.step()
sessions += counted
graph = torch.cuda.CUDAGraph()
with torch.no_grad():
    with torch.cuda.graph(graph):
        sdpa(q, k, v)
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof:
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
sessions.append(events(prof))
steps(5)
sdpa(q, k, v)  # a kind that is new after all of them
torch.cuda.synchronize()
print(json.dumps(sessions))
