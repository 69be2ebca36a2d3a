#!/usr/bin/env python3
"""The launcher on a real program: exit codes of its own, reports that are not overwritten, --error-exitcode, a foreign LD_PRELOAD."""
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
    script.expect(attntrace("--", "no-such-command").returncode == 127, "a command that is not there: 127")
    script.expect(attntrace("--", "/etc/passwd").returncode == 126, "a file that cannot be run: 126")
    unknown = attntrace("--error-exitcod", "3", "--", "true")
    script.expect(unknown.returncode == 2 and "error-exitcode" in unknown.stderr, "an unknown option: 2, and the near name")
    unknown = attntrace("--", "true", ATTNTRACE_OPTIONS="quite=1")
    script.expect(unknown.returncode == 2 and "quiet" in unknown.stderr, "an unknown key in ATTNTRACE_OPTIONS: 2, and the near name")

    first = attntrace("--error-exitcode", "9", "-q", "-o", "one.attn", "--", python, PROGRAMS / "mha.py")
    script.expect(first.returncode == 9, f"--error-exitcode 9 where there is a warning ({first.returncode})")
    before = (script.work / "one.attn").read_bytes()
    again = attntrace("-q", "-o", "one.attn", "--", python, PROGRAMS / "exit_code.py")
    script.expect((script.work / "one.attn").read_bytes() == before, f"a report is not overwritten without -f ({again.returncode})")

    plain = attntrace("-q", "--", python, "-c", "import os; print(os.environ['LD_PRELOAD'])", LD_PRELOAD="libm.so.6")
    script.expect("libm.so.6" in plain.stdout, f"the user's LD_PRELOAD is kept: {plain.stdout.strip()}")
    script.expect(plain.returncode == 0 and "status=untraced" in plain.stderr, "a program without PyTorch runs, untraced")

    # The same build without its agents: what an installation for other PyTorch versions looks like.
    prefix = script.work / "prefix"
    (prefix / "lib/attntrace").mkdir(parents=True)
    shutil.copy(script.attntrace, prefix)
    shutil.copy(script.attntrace.parent / "lib/attntrace/libattntrace_preload.so", prefix / "lib/attntrace")
    declined = subprocess.run([prefix / "attntrace", "-o", script.work / "none.attn", "--", python, PROGRAMS / "exit_code.py"],
                              env=trace.environment(), capture_output=True, text=True)
    script.expect(declined.returncode == 3, f"no agent for this PyTorch: the program runs all the same ({declined.returncode})")
    script.expect("status=untraced" in declined.stderr and "agent" in declined.stderr, f"and it is said\n{declined.stderr}")
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
