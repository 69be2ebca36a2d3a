#!/usr/bin/env python3
"""kill -9 of the program, and of program and launcher both, in mid-run: what had happened before is in the report."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

from harness import trace
from harness.script import SUBJECTS, Script


def start(script, folder):
    folder.mkdir()
    return subprocess.Popen([script.attntrace, "-o", folder / "run.attn", "--", script.python, SUBJECTS / "endless.py"],
                            cwd=folder, env=trace.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def child_of(launcher):
    return int(pathlib.Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()[0])


def read_until(launcher, count):
    """The last count that was read."""
    for line in launcher.stdout:
        if int(line) >= count:
            return int(line)
    raise AssertionError("the program ended by itself")


def last(launcher, printed):
    """The last count that was printed before the end. (Not communicate(): it would lose what iterating has buffered.)"""
    return int((launcher.stdout.read().split() or [printed])[-1])


def counted(report):
    return int(report["totals"]["forward_calls"])


def child_killed(script, count):
    folder = script.work / f"child-{count}"
    launcher = start(script, folder)
    printed = read_until(launcher, count)
    os.kill(child_of(launcher), signal.SIGKILL)
    printed = last(launcher, printed)
    launcher.wait(timeout=60)
    report = trace.read_report(script.attntrace, folder / "run.attn")
    script.expect(launcher.returncode == -signal.SIGKILL, f"killed program: the launcher ends by the same signal ({launcher.returncode})")
    script.expect(counted(report) in (printed, printed + 1), f"killed after {printed} calls: {counted(report)} in the report")
    script.expect(report["processes"][0]["ended"] == "died", "the report says that it died")


def both_killed(script):
    folder = script.work / "both"
    launcher = start(script, folder)
    printed = read_until(launcher, 200)
    child = child_of(launcher)
    launcher.kill()
    launcher.wait()
    time.sleep(0.3)  # the program goes on without its launcher
    os.kill(child, signal.SIGKILL)
    printed = last(launcher, printed)
    while pathlib.Path(f"/proc/{child}").exists():
        time.sleep(0.05)
    script.expect(not (folder / "run.attn").exists(), "both killed: there is no report yet")

    doctor = subprocess.run([script.attntrace, "doctor", "--python", script.python], cwd=folder, env=trace.environment(),
                            capture_output=True, text=True)
    script.expect("recover" in doctor.stdout + doctor.stderr, "doctor says that there is something to recover")
    (left,) = folder.glob("*.attntrace.d")
    recover = subprocess.run([script.attntrace, "recover", left], cwd=folder, env=trace.environment(), capture_output=True, text=True)
    script.expect(recover.returncode == 0, f"recover makes the report\n{recover.stderr if recover.returncode else ''}")
    report = trace.read_report(script.attntrace, folder / "run.attn")
    script.expect(counted(report) in (printed, printed + 1), f"both killed after {printed} calls: {counted(report)} in the report")


def main():
    script = Script(__doc__, "kill")
    for _ in range(3):
        child_killed(script, random.randrange(1, 2000))
    both_killed(script)
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
