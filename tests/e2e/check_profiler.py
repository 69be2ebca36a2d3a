#!/usr/bin/env python3
"""PyTorch's own observers see exactly the events that they see untraced, and attention goes on being seen beside them."""
import json
import subprocess
import sys

from harness import script, trace

# Of profiled.py: 20 steps, sessions of 3, 5, 2, 8, 3 + 1, 1, 2, 2; each with one SDPA call and one by hand, forward and backward.
STEPS = 20 + 3 + 5 + 2 + 8 + 4 + 1 + 2 + 2

check = script.Script(__doc__, "profiler")
for order, first in (("first", 1), ("late", 0)):
    subject = [check.python, script.SUBJECTS / "profiled.py", order]
    plain = subprocess.run(list(map(str, subject)), capture_output=True, text=True, timeout=300, env=trace.environment())
    traced = trace.run(check.attntrace, subject, check.work, timeout=300)
    check.expect(plain.returncode == 0, f"{order}: the program runs by itself" if plain.returncode == 0 else plain.stderr)
    check.expect(traced.returncode == 0, f"{order}: the program runs traced")
    here, there = json.loads(plain.stdout), json.loads(traced.stdout)
    for key, events in here.items():
        check.expect(bool(events), f"{order}: {key}: there is something to compare")
        check.expect(events == there[key], f"{order}: {key}: the same events" if events == there[key]
                     else f"{order}: {key}: {events}\n became {there[key]}")
    counts = {}
    for variant in traced.report["variants"]:
        key = (variant["operator"], variant["phase"])
        counts[key] = counts.get(key, 0) + int(variant["count"])
    wanted = {(operator, phase): STEPS + first for operator in ("aten::scaled_dot_product_attention", "hand-written")
              for phase in ("forward", "backward")}
    check.expect(counts == wanted, f"{order}: every call is counted: {counts}" if counts == wanted else f"{order}: {counts}, not {wanted}")
sys.exit(check.end())
