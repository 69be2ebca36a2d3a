"""What a plain program takes on the CPU, to hold a reference run against: F.scaled_dot_product_attention forward and backward.

Run with libattntrace_reference_memory.so preloaded; prints {backend: [peak of the forward, of the backward, of both, kept]}.
"""
import ctypes
import json

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

SIZES = (2, 4, 192, 32)
library = ctypes.CDLL(None)
for name in ("live", "peak"):
    getattr(library, f"attntrace_reference_{name}").restype = ctypes.c_int64
live, peak = (lambda: library.attntrace_reference_live(0, 0)), (lambda: library.attntrace_reference_peak(0, 0))
reset = lambda: library.attntrace_reference_reset(0, 0)


def measure(inputs):
    start = live()
    reset()
    out = F.scaled_dot_product_attention(*inputs)
    forward, kept = peak() - start, live() - start
    grad = torch.randn_like(out)
    given = live()
    reset()
    grads = torch.autograd.grad(out, inputs, grad)
    result = [forward, peak() - given, max(forward, peak() - start), kept]
    del grads
    return result


peaks = {}
for backend in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
    inputs = [torch.randn(SIZES, requires_grad=True) for _ in range(3)]
    with sdpa_kernel(backend):
        peaks[backend.name.split("_")[0].lower()] = measure(inputs)
print(json.dumps(peaks))
