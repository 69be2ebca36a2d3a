#!/usr/bin/env python3
"""What Dynamo makes of a program does not change under attntrace: the same graph breaks, recompiles, guards and results."""
import difflib
import json
import subprocess
import sys

from harness import script, trace

check = script.Script(__doc__, "compile")
subject = [check.python, script.SUBJECTS / "compiled.py"]
plain = subprocess.run(list(map(str, subject)), capture_output=True, text=True, timeout=400, env=trace.environment())
traced = trace.run(check.attntrace, subject, check.work, timeout=400)
check.expect(plain.returncode == 0, f"the program runs by itself{plain.stderr[-2000:] if plain.returncode else ''}")
check.expect(traced.returncode == 0, "the program runs traced")
here, there = json.loads(plain.stdout), json.loads(traced.stdout)
for key in here:
    texts = [json.dumps(found[key], indent=1, sort_keys=True).splitlines() for found in (here, there)]
    difference = "\n".join(difflib.unified_diff(*texts, "alone", "traced", lineterm="", n=1))
    check.expect(not difference, f"{key}: {difference[:4000]}" if difference else f"{key} are the same ({len(texts[0])} lines)")

# There was something to compare: every kind of event, and guards of more than a frame or two.
lines = sum(len(text) for texts in here["guards"].values() for text in texts)
check.expect(len(here["guards"]) >= 3 and lines > 100, f"{len(here['guards'])} compiled frames have {lines} lines of guards")
check.expect(here["counters"]["graph_break"] != {}, "a graph broke")
check.expect(len(here["failures"]) >= 2, "frames were compiled again")
check.expect("limit" in json.dumps(here["counters"]) + plain.stderr, "the recompile limit was hit")
check.expect(int(traced.report["totals"]["forward_calls"]) >= 18, "the calls were seen")
sys.exit(check.end())
