# Forward and backward calls whose peaks PyTorch measures itself: one JSON line with bytes.
import json

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

highest, calls = 0, {}


def measured(name, call):
    global highest
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    highest = max(highest, torch.cuda.max_memory_allocated())
    torch.cuda.reset_peak_memory_stats()
    result = call()
    calls[name] = torch.cuda.max_memory_allocated() - before
    highest = max(highest, torch.cuda.max_memory_allocated())
    return result


q, k, v = (torch.randn(1, 8, 2048, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3))
mask = torch.ones(2048, 2048, dtype=torch.bool, device="cuda").tril()
with torch.no_grad():
    measured("plain", lambda: sdpa(q, k, v))  # plain
    measured("masked", lambda: sdpa(q, k, v, attn_mask=mask))  # masked
    torch.backends.cuda.enable_cudnn_sdp(False)
    measured("flash", lambda: sdpa(q, k, v))  # flash
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    measured("math", lambda: sdpa(q, k, v))  # math
steps = {}
for n in (1, 513, (1 << 20) + 1):  # how the allocator counts
    before = torch.cuda.memory_allocated()
    held = torch.empty(n, dtype=torch.uint8, device="cuda")
    steps[n] = torch.cuda.memory_allocated() - before
    del held
out = sdpa(q, k, v)
out.sum().backward()
torch.cuda.synchronize()
highest = max(highest, torch.cuda.max_memory_allocated())
print(json.dumps({"peak": highest, "live": torch.cuda.memory_allocated(), "calls": calls, "steps": steps}))
