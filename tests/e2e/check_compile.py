#!/usr/bin/env python3
"""What Dynamo makes of a program does not change under attntrace: the same graph breaks, recompiles, guards and results."""
import json
import subprocess
import sys

from harness import script, trace

check = script.Script(__doc__, "compile")
subject = [check.python, script.SUBJECTS / "compiled.py"]
plain = subprocess.run(list(map(str, subject)), capture_output=True, text=True, timeout=300, env=trace.environment())
traced = trace.run(check.attntrace, subject, check.work, timeout=300)
check.expect(plain.returncode == 0, "the program runs by itself")
check.expect(traced.returncode == 0, "the program runs traced")
here, there = json.loads(plain.stdout), json.loads(traced.stdout)
for key in here:
    check.expect(here[key] == there[key], f"{key} is the same: {here[key]}" if here[key] == there[key] else f"{key}: {here[key]} became {there[key]}")
check.expect(here["counters"]["graph_break"] != {} and max(here["failures"], default=0) > 0, "there was something to compare")
check.expect(int(traced.report["totals"]["forward_calls"]) >= 8, "the calls were seen")
sys.exit(check.end())
