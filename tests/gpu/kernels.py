#!/usr/bin/env python3
"""Reference runs on a GPU: builds attntrace-reference for this Python's PyTorch and holds it against torch.cuda and float64 math.

    tests/gpu/kernels.py [--build FOLDER] [--no-build] [--flex] [--sanitize]

Needs CMake, Ninja, nvcc and a PyTorch with CUDA; prints one table, and exits 1 where a line does not hold.
--flex also measures flex_attention dense and compiled; --sanitize runs a small sweep under compute-sanitizer.
"""
import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/unit/kernels"))
from reference_client import Reference, tensor  # noqa: E402

MIB = 2.0 ** 20
LIBRARY = pathlib.Path(torch.__file__).parent / "lib"
# Of max |difference| to float64 math, with inputs drawn from a normal distribution: gradients that sum over rows and grouped heads
# reach 64, where half a unit in the last place is 0.016 of float16 and 0.125 of bfloat16, and the output they are made from is rounded too.
BOUNDS = {"float32": 1e-4, "float64": 1e-12, "float16": 5e-2, "bfloat16": 4e-1}
failures = 0


def line(name, holds, *columns):
    global failures
    failures += not holds
    print(f"{'ok    ' if holds else 'FAILED'} {name:46}", *(f"{column:>14}" for column in columns), flush=True)


def build(folder):
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DPython_EXECUTABLE={sys.executable}", "-DCMAKE_BUILD_TYPE=Release",
                 "-DATTNTRACE_BUILD_OUTSIDE=OFF", "-DATTNTRACE_BUILD_PRELOAD=OFF", "-DATTNTRACE_BUILD_TESTS=OFF"]
    for command in (configure, ["ninja", "-C", folder, "attntrace_reference", "attntrace_tiled_cuda"]):
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(done.stdout[-6000:])


def shapes(random_, small):
    """A call of the sweep: fields of a request."""
    pick = random_.choice
    batch, heads_kv = pick([1, 2]), pick([1, 2])
    heads = heads_kv * pick([1, 1, 4])
    rows, columns = pick([1, 31, 32, 33, 100]), pick([1, 32, 65, 128])
    dim = pick([7, 16, 64] if small else [7, 16, 64, 80, 128])
    dim_v = pick([dim, dim, 24])
    dtype = pick(list(BOUNDS))
    fields = {"causal": pick([0, 0, 1]), "gqa": int(heads != heads_kv), "check": 1, "device": "cuda:0"}
    strided = pick([0, 0, 1])
    strides = [heads * rows * dim, rows * dim, 1, rows] if strided else None
    fields["q"] = tensor([batch, heads, rows, dim], dtype, strides=strides)
    fields["k"] = tensor([batch, heads_kv, columns, dim], dtype)
    fields["v"] = tensor([batch, heads_kv, columns, dim_v], dtype)
    fields["dropout"] = pick([0, 0, 0.2])  # held against the host's own Philox
    mask = pick(["none", "bool", "bias", "bias"])
    if mask != "none" and not fields["causal"]:
        size = [pick([1, batch]), pick([1, heads]), pick([1, rows]), columns]
        fields["mask"] = tensor(size, "bool" if mask == "bool" else dtype, grad=mask == "bias")
        fields["content"] = "other"
    return dtype, fields


def sweep(reference, count, small=False):
    random_ = random.Random(20)
    worst, broken = dict.fromkeys(BOUNDS, 0.0), []
    seen = dict.fromkeys(("dropout", "bool mask", "bias gradient", "grouped", "causal, Sq is not Sk"), 0)
    for _ in range(count):
        dtype, fields = shapes(random_, small)
        response = reference.ask("tiled", **fields)
        seen["dropout"] += fields["dropout"] > 0
        seen["bool mask"] += "/bool/" in fields.get("mask", "")
        seen["bias gradient"] += fields.get("mask", "").endswith("/g")
        seen["grouped"] += fields["gqa"]
        seen["causal, Sq is not Sk"] += fields["causal"] and fields["q"].split(",")[2] != fields["k"].split(",")[2]
        if response["status"] != "ok":
            broken.append(f"{response['status']} {response['words']} {fields}")
            continue
        difference = float(response["difference"])
        worst[dtype] = max(worst[dtype], difference)
        if not difference <= BOUNDS[dtype]:
            broken.append(f"difference {difference} {fields}")
    for dtype, bound in BOUNDS.items():
        line(f"tiled kernel against float64 math, {dtype}", worst[dtype] <= bound, f"{worst[dtype]:.1e}", f"<= {bound:.0e}")
    line(f"tiled kernel, {count} calls", not broken and (small or all(number >= 5 for number in seen.values())))
    print("       of these:", ", ".join(f"{name} {number}" for name, number in seen.items()))
    for text in broken[:5]:
        print("      ", text)


def by_statistics(run, inputs):
    """Peak over forward and backward of a second run, by torch.cuda alone."""
    for _ in range(2):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        start = torch.cuda.memory_allocated()
        out = run()
        grad = torch.randn_like(out)
        torch.autograd.grad(out, inputs, grad)
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - start
        del out, grad
    return peak


def peaks(reference, flex):
    sizes, dtype = [1, 8, 4096, 64], "bfloat16"
    inputs = [torch.randn(sizes, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3)]
    spec = tensor(sizes, dtype)
    call = {"q": spec, "k": spec, "v": spec, "device": "cuda:0", "limit_ms": 200}
    backends = {"math": SDPBackend.MATH, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
                "cudnn": SDPBackend.CUDNN_ATTENTION}

    def compare(path, run, client):
        response = client.ask(path, **call)
        if response["status"] != "ok":
            return line(f"peak of {path}", False, response["status"], response["words"])
        # Both hold the incoming gradient; the reference counts it in the total as well.
        there = by_statistics(run, inputs)
        here = response["total_peak"]
        line(f"peak of {path} (ran {response['backend']})", abs(here - there) <= 0.02 * there, f"{here / MIB:.1f} MiB",
             f"{there / MIB:.1f} MiB", f"{response['forward_ns'] / 1e6:.2f} ms", f"{response['backward_ns'] / 1e6:.2f} ms")

    for path, backend in backends.items():
        with sdpa_kernel(backend):
            compare(path, lambda: F.scaled_dot_product_attention(*inputs), reference)
    mine = [reference.ask("tiled", **{**call, **dict.fromkeys("qkv", tensor([1, 8, size, 64], dtype))}) for size in (4096, 8192)]
    if any(response["status"] != "ok" for response in mine):
        return line("tiled kernel at S=4096", False, mine[0]["words"])
    ratio = mine[1]["total_peak"] / mine[0]["total_peak"]
    line("tiled kernel, S doubled: bytes double", abs(ratio - 2) < 0.05, f"{mine[0]['total_peak'] / MIB:.1f} MiB", f"x {ratio:.2f}",
         f"{mine[0]['forward_ns'] / 1e6:.2f} ms", f"{mine[0]['backward_ns'] / 1e6:.2f} ms")
    row_bias = "1,1,1,{0}/{0},{0},{0},1/bfloat16/g"
    flavours = {
        "dropout": lambda size: {"dropout": 0.1},
        "grouped, causal": lambda size: {"causal": 1, "gqa": 1, "k": tensor([1, 2, size, 64], dtype), "v": tensor([1, 2, size, 64], dtype)},
        "a row of bias with a gradient": lambda size: {"mask": row_bias.format(size), "content": "other"},
        "float64": lambda size: dict.fromkeys("qkv", tensor([1, 8, size, 64], "float64")),
    }
    for name, more in flavours.items():
        short, long = (reference.ask("tiled", **{**call, **dict.fromkeys("qkv", tensor([1, 8, size, 64], dtype)), "limit_ms": 0,
                                                 **more(size)}) for size in (1024, 2048))
        if short["status"] != "ok" or long["status"] != "ok":
            line(f"tiled kernel, {name}", False, short["words"] or long["words"])
            continue
        ratio = long["total_peak"] / short["total_peak"]
        line(f"tiled kernel, {name}, S doubled: bytes double", abs(ratio - 2) < 0.05, f"{short['total_peak'] / MIB:.1f} MiB", f"x {ratio:.2f}")
    if flex is not None:
        from torch.nn.attention.flex_attention import flex_attention
        compiled = torch.compile(flex_attention)
        compare("flex-dense", lambda: flex_attention(*inputs), flex)
        compare("flex-compiled", lambda: compiled(*inputs), flex)


def sanitize(program):
    tool = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not pathlib.Path(tool).exists():
        return line("compute-sanitizer", False, "not here")
    for check in ("memcheck", "racecheck"):
        report = program.parent / f"sanitizer-{check}.txt"
        reference = Reference(program, LIBRARY, [tool, "--tool", check, "--error-exitcode", "9", "--log-file", str(report)])
        random_ = random.Random(3)
        wrong = 0
        for _ in range(6):
            _, fields = shapes(random_, small=True)
            wrong += reference.ask("tiled", **{**fields, "check": 0})["status"] != "ok"
        code = reference.close()
        line(f"compute-sanitizer {check}, 6 calls forward and backward", code == 0 and not wrong, f"exit {code}")
        if code or wrong:
            print(report.read_text()[-2000:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-gpu")
    parser.add_argument("--no-build", action="store_true")
    parser.add_argument("--flex", action="store_true")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--calls", type=int, default=150)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        print("skipped: PyTorch has no CUDA device here")
        return 77
    if not arguments.no_build:
        build(arguments.build)
    program = next(arguments.build.glob("lib/attntrace/torch-*/attntrace-reference"))
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}")
    reference = Reference(program, LIBRARY)
    flex = None
    if arguments.flex:
        seam = program.parent / "libattntrace_reference_memory.so"
        flex = Reference(program.parent / "flex_reference.py", LIBRARY, [sys.executable], {"LD_PRELOAD": str(seam)})
    sweep(reference, arguments.calls)
    peaks(reference, flex)
    if arguments.sanitize:
        sanitize(program)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
