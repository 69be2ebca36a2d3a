#!/usr/bin/env python3
"""What tracing costs: each subject untraced and traced in turn, in pairs of one run; medians over the pairs.

    tests/bench/run.py --attntrace build/attntrace --python PY [--pairs N]

A pair's two processes run one right after the other, the order changing from pair to pair, so that a machine that slows down
slows both.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


def run(command, folder):
    env = {key: value for key, value in os.environ.items() if not key.startswith("ATTNTRACE_")}
    env.update(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    ended = time.time()
    if done.returncode:
        sys.exit(f"{command} failed with {done.returncode}:\n{done.stderr}")
    figures = json.loads(done.stdout.splitlines()[-1])
    if "end" in figures:
        figures["end"] = ended - figures["end"]  # from the program's last line to the prompt
    return figures


def pairs(attntrace, python, subject, count, folder):
    plain = [python, str(HERE / subject)]
    traced = [str(attntrace), "-q", "-o", str(folder / "bench.attn"), "-f", "--", *plain]
    untraced_figures, traced_figures = [], []
    for pair in range(count):
        both = [(plain, untraced_figures), (traced, traced_figures)]
        for command, figures in both if pair % 2 == 0 else reversed(both):
            figures.append(run(command, folder))
        print(f"\r{subject}: pair {pair + 1} of {count}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return untraced_figures, traced_figures


def row(what, figures, key, unit, scale, limit=None, ratio=False):
    untraced, traced = ([one[key] * scale for one in side] for side in figures)
    if ratio:
        added = statistics.median(b / a for a, b in zip(untraced, traced))
        shown = f"x{added:.3f}"
        held = f"<= {limit}x"
    else:
        added = statistics.median(b - a for a, b in zip(untraced, traced))
        shown = f"{added:+.0f} {unit}"
        held = f"<= {limit:g} {unit}" if limit else "-"
    verdict = "" if not limit else "held" if added <= limit else "NOT HELD"
    untraced, traced = (f"{statistics.median(side):.{0 if scale == 1 else 1}f} {unit}" for side in (untraced, traced))
    print(f"{what:<44} {untraced:>12} {traced:>12} {shown:>12}   {held:<12} {verdict}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attntrace", required=True, type=pathlib.Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--pairs", type=int, default=7)
    arguments = parser.parse_args()
    attntrace = arguments.attntrace.resolve()
    facts = "import torch, importlib.util as u; print(torch.__version__, bool(u.find_spec('transformers')))"
    torch, has_transformers = subprocess.check_output([arguments.python, "-c", facts], text=True).split()
    with tempfile.TemporaryDirectory(prefix="attntrace-bench-") as folder:
        folder = pathlib.Path(folder)
        operators = pairs(attntrace, arguments.python, "operators.py", arguments.pairs, folder)
        llama = has_transformers == "True" and pairs(attntrace, arguments.python, "llama.py", arguments.pairs, folder)
    print(f"torch {torch}, {platform.machine()}, {os.cpu_count()} cores, {arguments.pairs} pairs, medians; processor time of one thread")
    print(f"{'':<44} {'untraced':>12} {'traced':>12} {'added':>12}   to hold")
    row("operator that is not attention (torch.add)", operators, "operator", "ns", 1, 150)
    row("attention call of a known variant (SDPA)", operators, "attention", "ns", 1, 10000)
    row("allocation (torch.empty)", operators, "allocation", "ns", 1)
    row("a linear layer, forward and backward", operators, "layer", "ns", 1)
    if llama:
        row("training step of a small Llama", llama, "step", "ms", 1000, 1.02, ratio=True)
        row("from the program's last line to the prompt", llama, "end", "ms", 1000, 1000)


if __name__ == "__main__":
    main()
