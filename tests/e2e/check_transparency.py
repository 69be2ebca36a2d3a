#!/usr/bin/env python3
"""The traced program prints the same, to the last bit of every loss, and reads its standard input as ever."""
import subprocess
import sys

from harness import program, trace, versions
from harness.script import Script


def main():
    script = Script(__doc__, "transparency")
    for name in ("training_loop", "double_backward", "silent_controls"):
        subject = program.load(name)
        if versions.unmet(subject.requires, script.python):
            continue
        command = subject.command(script.python)
        plain = subprocess.run(command, env=trace.environment(), cwd=script.work, capture_output=True, text=True)
        traced = trace.run(script.attntrace, command, script.work)
        script.expect(plain.stdout == traced.stdout, f"{name}: standard output is the same\n{plain.stdout}--\n{traced.stdout}"
                      if plain.stdout != traced.stdout else f"{name}: standard output is the same")
        script.expect(plain.returncode == traced.returncode, f"{name}: exit code {plain.returncode} and {traced.returncode}")
        script.expect(traced.report is not None and traced.report["variants"] or name == "silent_controls", f"{name}: it was traced")

    echo = [script.python, "-c", "import sys; sys.stdout.write(sys.stdin.read()); sys.stderr.write('own\\n')"]
    done = subprocess.run([script.attntrace, "-q", "-o", script.work / "echo.attn", "--", *echo], input="one\ntwo", text=True,
                          capture_output=True, env=trace.environment())
    script.expect(done.stdout == "one\ntwo", "standard input reaches the program, its output is untouched")
    script.expect("own\n" in done.stderr, "its standard error too")
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
