#!/usr/bin/env python3
"""A million attention calls leave a report under 1 MB and a spool under 8 MB, and every one is counted."""
import sys

from harness import laws, trace
from harness.script import SUBJECTS, Script

CALLS = 1_000_000


def main():
    script = Script(__doc__, "million_calls")
    result = trace.run(script.attntrace, [script.python, SUBJECTS / "million.py", CALLS], script.work, timeout=500)
    report = (script.work / "run.attn").stat().st_size
    spool = int(result.stdout.split()[1])
    script.expect(result.returncode == 0, "the program ended well")
    script.expect(result.report["totals"]["forward_calls"] == str(CALLS), f"{result.report['totals']['forward_calls']} calls were counted")
    script.expect(len(result.report["variants"]) == 1, "as one variant")
    script.expect(report < 1_000_000, f"the report has {report} bytes")
    script.expect(spool < 8 * 2**20, f"the spool has {spool} bytes")
    for error in laws.broken(result.report, result.summary):
        script.expect(False, error)
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
