"""flex_attention for the reference: the protocol of kernels/protocol.h, spoken by the same Python as the traced program.

Run with libattntrace_reference_memory.so preloaded, whose counters see every allocation of PyTorch. Paths: flex-dense and
flex-compiled. A block mask is made anew where the request says what it held (plain-causal); one that hid something else is left out,
and all is computed.
"""
import ctypes
import gc
import os
import statistics
import sys
import time
import urllib.parse

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

MOST_SCORES = 1 << 24  # compared with float64 math up to here
MOST_REPEATS = 30


class Memory:
    """Bytes of tensor storage on one device, as the allocators report them."""

    _library = ctypes.CDLL(None)

    def __init__(self, device):
        self.where = (1 if device.type == "cuda" else 0, device.index or 0)
        for name in ("live", "peak"):
            getattr(self._library, f"attntrace_reference_{name}").restype = ctypes.c_int64

    def live(self):
        return self._library.attntrace_reference_live(*self.where)

    def peak(self):
        return self._library.attntrace_reference_peak(*self.where)

    def reset(self):
        self._library.attntrace_reference_reset(*self.where)


def timed(device, work):
    if device.type != "cuda":
        start = time.perf_counter_ns()
        result = work()
        return result, time.perf_counter_ns() - start
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    result = work()
    end.record()
    end.synchronize()
    return result, int(start.elapsed_time(end) * 1e6)


def tensor(text, device, wants_grad):
    sizes, strides, dtype, grad = text.split("/")
    numbers = lambda part: [int(number) for number in part.split(",") if number]
    made = torch.empty_strided(numbers(sizes), numbers(strides), dtype=getattr(torch, dtype), device=device).normal_()
    return made.requires_grad_(wants_grad and grad == "g")


def causal(batch, head, row, column):
    return row >= column


class Call:
    def __init__(self, fields):
        self.device = torch.device(fields["device"])
        # On CPU flex_attention has no backward, and refuses inputs that want a gradient.
        self.backward = fields.get("backward") == "1" and self.device.type == "cuda"
        self.inputs = [tensor(fields[name], self.device, self.backward) for name in "qkv"]
        self.grads = [one for one in self.inputs if one.requires_grad]
        self.options = {"scale": float(fields["scale"]) if "scale" in fields else None,
                        "enable_gqa": self.inputs[0].size(-3) != self.inputs[1].size(-3)}
        self.causal = fields.get("content") == "plain-causal"
        if self.causal:
            lengths = self.inputs[0].size(-2), self.inputs[1].size(-2)
            self.options["block_mask"] = create_block_mask(causal, None, None, *lengths, device=self.device)
        self.run = torch.compile(flex_attention) if fields["path"] == "flex-compiled" else flex_attention

    def forward(self):
        with torch.set_grad_enabled(self.backward):
            return self.run(*self.inputs, **self.options)

    def gradients(self, out, grad):
        return torch.autograd.grad(out, self.grads, grad)

    def difference(self):
        q, k, v = (one.detach().double() for one in self.inputs)
        if q.numel() // q.size(-1) * k.size(-2) > MOST_SCORES:
            return None
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            right = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal, scale=self.options["scale"],
                                                                     enable_gqa=self.options["enable_gqa"])
        return (self.forward().detach().double() - right).abs().max().item()


def measure(call, fields):
    memory = Memory(call.device)
    call.forward()  # compiles
    if call.backward:
        out = call.forward()
        call.gradients(out, torch.ones_like(out))
        del out
    gc.collect()  # compiling leaves tensors in cycles: freed in the middle of the call, they would be taken off its peak
    start = memory.live()
    memory.reset()
    out, forward_ns = timed(call.device, call.forward)
    forward_peak = total = memory.peak() - start
    kept, backward_peak, backward_ns = memory.live() - start, 0, 0
    if call.backward:
        grad = torch.randn_like(out)
        given = memory.live()
        memory.reset()
        grads, backward_ns = timed(call.device, lambda: call.gradients(out, grad))
        backward_peak, total = memory.peak() - given, max(total, memory.peak() - start)
        del grads, grad
    del out
    forwards, backwards, end = [forward_ns], [backward_ns], time.monotonic() + int(fields["limit_ms"]) / 1e3
    while time.monotonic() < end and len(forwards) < MOST_REPEATS:
        out, ns = timed(call.device, call.forward)
        forwards.append(ns)
        if call.backward:
            grad = torch.randn_like(out)
            backwards.append(timed(call.device, lambda: call.gradients(out, grad))[1])
        del out
    result = {"status": "ok", "backend": fields["path"], "forward_peak": forward_peak, "backward_peak": backward_peak,
              "total_peak": total, "kept": kept, "forward_ns": int(statistics.median(forwards)),
              "backward_ns": int(statistics.median(backwards)), "repeats": len(forwards)}
    difference = call.difference() if fields.get("check") == "1" else None
    return result if difference is None else {**result, "difference": difference}


def answer(line):
    fields = {key: urllib.parse.unquote(value) for key, value in (word.split("=", 1) for word in line.split())}
    try:
        result = measure(Call(fields), fields)
    except torch.OutOfMemoryError as error:
        result = {"status": "oom", "words": str(error).split("\n")[0]}
    except NotImplementedError as error:
        result = {"status": "refused", "words": str(error).split("\n")[0]}
    except Exception as error:  # whatever a compiler may raise is an answer too
        result = {"status": "error", "words": f"{type(error).__name__}: {error}".split("\n")[0][:500]}
    words = {"id": fields["id"], **result}
    return " ".join(f"{key}={urllib.parse.quote(str(value), safe='/,:+-.')}" for key, value in words.items())


def main():
    out = os.fdopen(os.dup(1), "w", buffering=1)  # what libraries print goes to standard error
    os.dup2(2, 1)
    for line in sys.stdin:
        if line.strip():
            print(answer(line), file=out, flush=True)


if __name__ == "__main__":
    main()
