#!/usr/bin/env python3
"""A C++ program that links LibTorch is attached without an interpreter: backends, phases, call path, exit code."""
import sys

from harness import laws, trace
from harness.script import Script


def main():
    script = Script(__doc__, "native")
    result = trace.run(script.attntrace, [*script.rest, "5"], script.work)
    script.expect(result.returncode == 5, f"exit code 5 comes through ({result.returncode})")
    script.expect(result.stdout == "1\n", "the program computed its gradient")
    seen = {(v["phase"], v["backend"], v["count"]) for v in result.report["variants"]}
    wanted = {("forward", "flash", "2"), ("backward", "flash", "2"), ("forward", "math", "1"), ("backward", "math", "1")}
    script.expect(seen == wanted, f"variants {sorted(seen)}")
    functions = {frame["function"] for frame in result.report["frames"] if frame["native"]}
    script.expect(any("Attend" in function or "main" in function for function in functions), "its own functions are on the call path")
    script.expect([f["rule"] for f in result.report["findings"]] == ["sdpa-math"], "sdpa-math is found, and nothing else")
    for error in laws.broken(result.report, result.summary):
        script.expect(False, error)
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
