#!/usr/bin/env python3
"""The output shown in README.md is what attntrace prints (tools/regen-docs --check)."""
import subprocess
import sys

from harness import versions
from harness.program import TESTS
from harness.script import Script


def main():
    script = Script(__doc__, "docs")
    lacking = versions.unmet(["torch==2.11", "transformers==5.17"], script.python)
    if lacking:
        print(f"skipped: the documents show other versions ({lacking})")
        return 77
    command = [sys.executable, TESTS.parent / "tools/regen-docs", script.python, "--attntrace", script.attntrace, "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    script.expect(done.returncode == 0, f"the documents show real output\n{done.stdout}{done.stderr}")
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
