"""Other observers of PyTorch's events beside us, before, during and after attention: what each has seen, as JSON."""
import collections
import json
import pathlib
import sys
import tempfile
import threading

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

torch.manual_seed(0)
linear = torch.nn.Linear(16, 16)
x = torch.randn(1, 2, 8, 16, requires_grad=True)
seen = {}


def steps(n):
    for _ in range(n):
        h = linear(x).relu() + x
        sdpa(h, h, h, is_causal=True).sum().backward()
        h = linear(x)
        p = torch.softmax(h @ h.mT, dim=-1) @ h  # by hand
        p.mean().backward()


def names(prof):
    return dict(sorted(collections.Counter(event.name for event in prof.events()).items()))


def session(name, n, **options):
    with profile(activities=[ProfilerActivity.CPU], **options) as prof:
        steps(n)
    seen[name] = names(prof)


if sys.argv[1] == "first":
    session("before any attention", 1)
steps(20)  # until every place that makes events is known
session("after attention", 3)
steps(5)
session("once more, with memory and shapes", 2, profile_memory=True, record_shapes=True)
counted = []
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
             on_trace_ready=lambda p: counted.append(names(p))) as prof:
    for _ in range(8):
        steps(1)
        prof.step()
seen["scheduled"] = counted

with profile(activities=[ProfilerActivity.CPU]) as prof:  # this thread's alone: another one goes on meanwhile
    thread = threading.Thread(target=steps, args=(3,))
    thread.start()
    thread.join()
    steps(1)
seen["beside a thread"] = names(prof)

with torch.autograd.profiler.record_function("a region"), torch.autograd.profiler.profile(use_kineto=False) as prof:
    steps(1)
seen["legacy"] = dict(sorted(collections.Counter(e.name for e in prof.function_events).items()))

with tempfile.TemporaryDirectory() as folder:  # a callback of all threads
    path = pathlib.Path(folder) / "trace.json"
    observer = ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    steps(2)
    observer.stop()
    observer.unregister_callback()
    nodes = json.loads(path.read_text())["nodes"]
    seen["execution trace"] = dict(sorted(collections.Counter(node["name"] for node in nodes).items()))
steps(2)
print(json.dumps(seen))
