"""What the tests of the command share: a folder each, and attntrace run in it with a clean environment."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

ATTNTRACE = os.environ["ATTNTRACE_UNDER_TEST"]
PRELOAD = "libattntrace_preload.so"


def clean_environment():
    ours = {k: v for k, v in os.environ.items() if not k.startswith("ATTNTRACE_")}
    for name in ("LD_PRELOAD", "NO_COLOR", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        ours.pop(name, None)
    return ours


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="attntrace-cli-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = clean_environment()
        self.environment["TMPDIR"] = self.folder + "/tmp"
        os.mkdir(self.environment["TMPDIR"])
        self.cwd = self.folder + "/here"
        os.mkdir(self.cwd)

    def run_it(self, *arguments, program=ATTNTRACE, timeout=60, **more):
        environment = {**self.environment, **more.pop("env", {})}
        return subprocess.run([program, *arguments], cwd=self.cwd, env=environment, timeout=timeout, text=True,
                              stdout=more.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, **more)

    def start(self, *arguments, **more):
        environment = {**self.environment, **more.pop("env", {})}
        process = subprocess.Popen([ATTNTRACE, *arguments], cwd=self.cwd, env=environment, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **more)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def here(self, suffix=""):
        return sorted(name for name in os.listdir(self.cwd) if name.endswith(suffix))

    def read(self, name):
        with open(os.path.join(self.cwd, name), "rb") as file:
            return file.read()

    def wait_for(self, condition, what, seconds=30):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.01)
        self.fail(f"waited {seconds} s for {what}")

    def assert_one_line(self, text, *words):
        self.assertEqual(text.count("\n"), 1, text)
        self.assertTrue(text.startswith("attntrace: "), text)
        for word in words:
            self.assertIn(word, text)

    def summary(self, result):
        last = result.stderr.splitlines()[-1]
        self.assertTrue(last.startswith("SUMMARY "), result.stderr)
        return dict(part.split("=", 1) for part in last.split(" ")[1:])


def main():
    # A test runner's own signal dispositions are not the subject.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    unittest.main(verbosity=2)
