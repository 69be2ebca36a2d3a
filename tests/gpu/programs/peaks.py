# What calls take by torch.cuda's own statistics: an independent check of reference runs. Reads a JSON list of runs, as a report has
# them (path, changes, and the call of their variant), makes each twice, and prints the peaks of the second time.
import gc
import json
import os
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

PATHS = {"math": [SDPBackend.MATH], "flash": [SDPBackend.FLASH_ATTENTION], "efficient": [SDPBackend.EFFICIENT_ATTENTION],
         "cudnn": [SDPBackend.CUDNN_ATTENTION],
         "fused": [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION]}
if os.environ.get("CUDNN") == "0":  # a program that switched it off
    PATHS["fused"].pop()


def make(spec, random=True):
    sizes, strides = [int(n) for n in spec["sizes"]], [int(n) for n in spec["strides"]]
    made = torch.empty_strided(sizes, strides, dtype=getattr(torch, spec["dtype"]), device="cuda")
    if spec["dtype"] == "bool":
        made.copy_(torch.ones(sizes, dtype=torch.bool, device="cuda").tril())
    else:
        made.normal_() if random else made.zero_()
    return made.requires_grad_() if spec.get("requires_grad") else made


def attention(q, k, v, mask, changes, dropout, causal, gqa, scale):
    dim_v, dtype, dims, dropped = v.size(-1), q.dtype, q.dim(), 0
    for change in changes:
        if change == "unsqueeze":
            q, k, v = (one.unsqueeze(1) for one in (q, k, v))
        elif change == "contiguous":
            q, k, v = (one.contiguous() for one in (q, k, v))
        elif change == "drop-mask":
            causal, mask = causal or not bool((mask if mask.dtype == torch.bool else mask == 0).all()), None
        elif change == "mask-dtype":
            mask = mask.to(q.dtype)
        elif change == "repeat-heads":
            times, gqa = q.size(-3) // k.size(-3), False
            k, v = k.repeat_interleave(times, -3), v.repeat_interleave(times, -3)
        elif change == "pad-head":
            size = (max(q.size(-1), v.size(-1)) + 7) // 8 * 8
            scale = scale or q.size(-1) ** -0.5
            q, k, v = (F.pad(one, (0, size - one.size(-1))) if one.size(-1) < size else one for one in (q, k, v))
        elif change in ("cast-bfloat16", "cast-float32"):
            to = torch.bfloat16 if change == "cast-bfloat16" else torch.float32
            q, k, v = (one.to(to) for one in (q, k, v))
            mask = mask.to(to) if mask is not None and mask.is_floating_point() else mask
        elif change == "detach-mask":
            mask = mask.detach()
        elif change in ("move-dropout", "no-dropout"):
            dropped, dropout = dropout if change == "move-dropout" else 0, 0
        else:
            assert change in ("allow", "sdpa"), change
    out = F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, scale=scale, enable_gqa=gqa)
    out = F.dropout(out, dropped) if dropped else out
    out = out[..., :dim_v] if out.size(-1) != dim_v else out
    out = out.squeeze(1) if out.dim() != dims else out
    return out.to(dtype)


def peak(run):
    call = run["call"]
    tensors = {spec["role"]: make(spec) for spec in call["tensors"]}
    inputs = [one for one in tensors.values() if one.requires_grad]
    result = 0
    for _ in range(2):
        gc.collect()  # what an earlier call left in cycles would be freed in the middle, and be missing of the peak
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        start = torch.cuda.memory_allocated()
        with sdpa_kernel(PATHS[run["path"]]):
            out = attention(*(tensors[name] for name in "qkv"), tensors.get("mask"), run["changes"], call["dropout_p"],
                            call["causal"], call["gqa"], call["scale"])
        if run["backward"]:
            grads = torch.autograd.grad(out, inputs, torch.randn_like(out), allow_unused=True)
            del grads
        torch.cuda.synchronize()
        result = torch.cuda.max_memory_allocated() - start
        del out
    return result


print(json.dumps([peak(run) for run in json.load(open(sys.argv[1]))]))
