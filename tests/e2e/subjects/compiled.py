"""Compiles layers with a graph break and a recompile, and prints what Dynamo did: counters, guards, failures."""
import json

import torch
from torch._dynamo import eval_frame
from torch._dynamo.utils import counters, guard_failures
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention


class Layer(torch.nn.Module):
    def forward(self, x):
        x = scaled_dot_product_attention(x, x, x, is_causal=True)
        torch._dynamo.graph_break()
        return flex_attention(x, x, x)


torch.manual_seed(0)
model = torch.compile(Layer(), backend="aot_eager", dynamic=False)
total = 0.0
with torch.no_grad():
    for length in (64, 64, 96, 128):
        total += model(torch.randn(1, 2, length, 16)).double().sum().item()
guards = {}
for code in (Layer.forward.__code__, flex_attention.__code__):
    entries = eval_frame._debug_get_cache_entry_list(code)
    guards[code.co_name] = [len(str(entry.guard_manager).splitlines()) for entry in entries]
print(json.dumps({"total": total.hex(), "guards": guards, "failures": sorted(len(texts) for texts in guard_failures.values()),
                  "counters": {key: dict(counters[key]) for key in ("stats", "graph_break", "recompile_limit", "unimplemented")}},
                 sort_keys=True))
