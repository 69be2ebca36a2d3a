#!/usr/bin/env python3
"""However many kinds of call a program makes, its report stays under 1 MB, and every call is counted."""
import sys

from harness import laws, trace
from harness.script import SUBJECTS, Script

MANY = {  # depth of a call path, call paths, lengths a path; places that must be told apart in the report
    "shapes": (40, 16, 64, 16),
    "paths": (60, 400, 1, 400),
    "more than a spool holds": (8, 1100, 1, 256),
}


def main():
    script = Script(__doc__, "many_kinds")
    for name, (depth, sites, shapes, apart) in MANY.items():
        folder = script.work / name.replace(" ", "-")
        result = trace.run(script.attntrace, [script.python, SUBJECTS / "kinds.py", depth, sites, shapes], folder, timeout=300)
        calls, totals = str(sites * shapes), result.report["totals"]
        script.expect(result.returncode == 0, f"{name}: the program ended well")
        script.expect((totals["forward_calls"], totals["backward_calls"]) == (calls, calls),
                      f"{name}: {totals['forward_calls']} + {totals['backward_calls']} calls of {calls} + {calls} were counted")
        size = (folder / "run.attn").stat().st_size
        script.expect(size < 1_000_000, f"{name}: the report has {size} bytes, {len(result.report['variants'])} variants, "
                                        f"{len(result.report['findings'])} findings")
        users = [path["frames"][path["user"]] for path in result.report["call_paths"]]
        functions = {result.report["frames"][frame]["function"] for frame in users}
        script.expect(len(functions) >= apart, f"{name}: {len(functions)} places of the user's own are told apart")
        rules = {finding["rule"] for finding in result.report["findings"]}
        script.expect("sdpa-math" in rules, f"{name}: {sorted(rules)}")
        for error in laws.broken(result.report, result.summary):
            script.expect(False, f"{name}: {error}")
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
