#!/usr/bin/env python3
"""The launcher with findings, with a report that stands already, and with no agent for the PyTorch that the program has."""
import shutil
import subprocess
import sys

from harness import trace
from harness.program import PROGRAMS
from harness.script import Script


def main():
    script = Script(__doc__, "launcher")

    def attntrace(*arguments, **env):
        return subprocess.run([script.attntrace, *arguments], cwd=script.work, env=trace.environment(env), capture_output=True,
                              text=True, timeout=180)

    python = script.python
    first = attntrace("--error-exitcode", "9", "-q", "-o", "one.attn", "--", python, PROGRAMS / "mha.py")
    script.expect(first.returncode == 9, f"--error-exitcode 9 where there is a warning ({first.returncode})")
    before = (script.work / "one.attn").read_bytes()
    again = attntrace("-q", "-o", "one.attn", "--", python, PROGRAMS / "exit_code.py")
    script.expect((script.work / "one.attn").read_bytes() == before, f"a report is not overwritten without -f ({again.returncode})")

    # The same build without its agents: what an installation for other PyTorch versions looks like.
    prefix = script.work / "prefix"
    (prefix / "lib/attntrace").mkdir(parents=True)
    shutil.copy(script.attntrace, prefix)
    shutil.copy(script.attntrace.parent / "lib/attntrace/libattntrace_preload.so", prefix / "lib/attntrace")
    declined = subprocess.run([prefix / "attntrace", "-o", script.work / "none.attn", "--", python, PROGRAMS / "exit_code.py"],
                              env=trace.environment(), capture_output=True, text=True)
    script.expect(declined.returncode == 3, f"no agent for this PyTorch: the program runs all the same ({declined.returncode})")
    script.expect("status=untraced" in declined.stderr and "make build PYTHON=" in declined.stderr, f"and it is said\n{declined.stderr}")

    # No room for a spool, as on a full disk: a limit on the size of files stands in for it.
    full = attntrace("-o", "full.attn", "--", "sh", "-c", f"ulimit -f 2048; exec {python} {PROGRAMS / 'exit_code.py'}")
    script.expect(full.returncode == 3, f"no room for the spool: the program runs all the same ({full.returncode})")
    script.expect("cannot reserve" in full.stderr and "status=untraced" in full.stderr, f"and it is said\n{full.stderr}")
    left = [path.name for path in script.work.glob("full*")]
    script.expect(left == ["full.attn"], f"and nothing half made is left: {left}")
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
