"""What the tests of the CUPTI collector share: a run of a small program under attntrace, and its report."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ATTNTRACE = os.environ["ATTNTRACE"]
FAKE = os.environ["FAKE_CUPTI"]


class Traced:
    def __init__(self, program, options=(), fake=True, timeout=300, **variables):
        with tempfile.TemporaryDirectory(prefix="attntrace-test-") as folder:
            subject = pathlib.Path(folder, "program.py")
            subject.write_text(program)
            environment = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1", **variables}
            if fake:
                environment["ATTNTRACE_LIBCUPTI"] = FAKE
            report = os.path.join(folder, "report.attn")
            start = time.monotonic()
            self.run = subprocess.run([ATTNTRACE, "-q", "-o", report, *options, "--", sys.executable, str(subject)],
                                      capture_output=True, text=True, timeout=timeout, env=environment)
            self.seconds = time.monotonic() - start
            if self.run.returncode != 0:
                raise AssertionError(f"exit {self.run.returncode}\n{self.run.stdout}\n{self.run.stderr}")
            shown = subprocess.run([ATTNTRACE, "report", "--format", "json", report], capture_output=True, text=True, check=True)
            self.report = json.loads(shown.stdout)

    def counter(self, name):
        return next((int(c.get("value", 0)) for c in self.report["processes"][0]["counters"] if c["name"] == name), 0)

    def variants(self, **wanted):
        return [v for v in self.report.get("variants", []) if all(v.get(key) == value for key, value in wanted.items())]

    def calls(self, **wanted):
        return sum(int(v.get("count", 0)) for v in self.variants(**wanted))

    def blind(self, code):
        return [spot["text"] for spot in self.report.get("blind_spots", []) if spot["code"] == code]
