"""Children are traced or left alone, and end as they end untraced."""

import os
import sys
import tempfile
import unittest

import harness

FORK = """
import os, torch
x = torch.ones(10)
child = os.fork()
if child == 0:
    y = torch.ones(1000)
    print(int((y + 1).sum()), flush=True)
    raise SystemExit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

SPAWN = """
import multiprocessing, torch

def work(n):
    return int(torch.ones(n).sum())

if __name__ == '__main__':
    with multiprocessing.get_context('spawn').Pool(2) as pool:
        print(pool.map(work, [1, 2, 3]))
    with multiprocessing.get_context('fork').Pool(2) as pool:
        print(pool.map(work, [4, 5, 6]))
"""

SUBPROCESS = """
import os, subprocess, sys, torch
print(subprocess.run([sys.executable, '-c', 'import torch; print(int(torch.ones(3).sum()))'], capture_output=True, text=True))
print(subprocess.run('exit 6', shell=True).returncode)
print(subprocess.run(['env', '-i', sys.executable, '-c', 'print(1)'], capture_output=True, text=True).stdout, flush=True)
os.execv(sys.executable, [sys.executable, '-c', 'import torch; print(7)'])
"""


class Children(unittest.TestCase):
    def setUp(self):
        self.job = harness.Job()
        self.addCleanup(self.job.close)

    def check(self, program):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                file.write(program)
            plain = harness.run_untraced(sys.executable, path)
            traced = self.job.run(sys.executable, path)
        self.assertEqual((traced.returncode, traced.stdout, traced.stderr), (plain.returncode, plain.stdout, plain.stderr))
        self.assertEqual(self.job.untraced(), [])
        return self.job.logs()

    def words(self, logs):
        return sorted([word for word, _ in records] for records in logs.values())

    def test_fork(self):
        # The child goes on with its parent's agent, which hears of both ends.
        logs = self.check(FORK)
        self.assertEqual(self.words(logs), [["at_exit"], ["start", "at_exit"]])
        child = next(records for records in logs.values() if len(records) == 1)[0][1]
        self.assertTrue(8_000 < int(child["allocated"]) < 9_000, child)  # its own memory is seen too
        self.assertEqual(child["live"], "0")

    def test_multiprocessing(self):
        started = [records for records in self.check(SPAWN).values() if records[0][0] == "start"]
        self.assertEqual(len(started), 3)  # the program and two spawned workers

    def test_subprocess_shell_and_exec(self):
        # The child that is run, the program, and the same process again after exec: its log goes on. Nothing was ended by exec.
        self.assertEqual(self.words(self.check(SUBPROCESS)), [["start", "at_exit"], ["start", "start", "at_exit"]])

    def test_fork_while_threads_allocate(self):
        result = self.job.run(harness.NATIVE_PROGRAMS / "native_allocations", "fork", 0, timeout=60)
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "done\n", ""))


if __name__ == "__main__":
    unittest.main()
