"""Signals sent to attntrace reach the program once, and the report is written all the same."""

import os
import pty
import signal
import sys
import time

from harness import ATTNTRACE, Case, main

# Counts the signals it gets and prints the count when it is told to end by SIGUSR2.
COUNTER = """
import os, signal, sys
got = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1):
    signal.signal(number, lambda number, frame: got.append(number))
done = []
signal.signal(signal.SIGUSR2, lambda number, frame: done.append(number))
print("ready", flush=True)
while not done:
    signal.pause()
print(*sorted(int(number) for number in got), flush=True)
"""


class Signals(Case):
    def test_each_is_passed_on_once(self):
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
        process = self.start("-q", "--", sys.executable, "-c", COUNTER)
        self.assertEqual(process.stdout.readline(), "ready\n")
        for number in numbers:
            process.send_signal(number)
            time.sleep(0.1)
        process.send_signal(signal.SIGUSR2)
        out, err = process.communicate(timeout=30)
        self.assertEqual(out.split(), [str(int(number)) for number in sorted(numbers)])
        self.assertEqual(process.returncode, 0)
        self.assertIn("SUMMARY", err)

    def test_killed_by_a_forwarded_signal(self):
        process = self.start("-q", "--", "sleep", "60")
        self.wait_for(lambda: self.here(".attntrace.d"), "the run to start")
        time.sleep(0.2)
        process.terminate()
        _, err = process.communicate(timeout=30)
        self.assertEqual(process.returncode, -signal.SIGTERM)
        self.assertIn("SUMMARY", err)

    def test_ctrl_c_of_a_terminal_comes_once(self):
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.cwd)
            os.execve(ATTNTRACE, [ATTNTRACE, "-q", "--", sys.executable, "-c", COUNTER], self.environment)
        text = self.read_until(terminal, "ready")
        os.write(terminal, b"\x03")
        time.sleep(0.3)
        os.kill(child, signal.SIGUSR2)
        text = self.read_until(terminal, "SUMMARY")
        self.assertIn(str(int(signal.SIGINT)) + "\r\n", text.replace("^C", ""))
        self.assertNotIn(f"{int(signal.SIGINT)} {int(signal.SIGINT)}", text)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        os.close(terminal)

    def test_stops_and_goes_on_with_the_program(self):
        # A group of its own below this process: the kernel discards SIGTSTP in an orphaned group, as this test's own may be.
        process = self.start("-q", "--", sys.executable, "-c", COUNTER, preexec_fn=os.setpgrp)
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.send_signal(signal.SIGTSTP)
        self.wait_for(lambda: self.state(process.pid) == "T", "attntrace to stop")
        [child] = self.children(process.pid)
        self.assertEqual(self.state(child), "T")
        process.send_signal(signal.SIGCONT)
        self.wait_for(lambda: self.state(child) != "T" and self.state(process.pid) != "T", "both to go on")
        process.send_signal(signal.SIGUSR2)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)

    def test_a_pause_of_the_program_alone(self):
        process = self.start("-q", "--", sys.executable, "-c", COUNTER)
        self.assertEqual(process.stdout.readline(), "ready\n")
        [child] = self.children(process.pid)
        os.kill(child, signal.SIGSTOP)
        self.wait_for(lambda: self.state(child) == "T", "the program to stop")
        time.sleep(0.2)
        self.assertNotEqual(self.state(process.pid), "T")
        os.kill(child, signal.SIGCONT)
        process.send_signal(signal.SIGUSR2)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)

    @staticmethod
    def state(pid):
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]

    @staticmethod
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(word) for word in file.read().split()]

    def read_until(self, terminal, word):
        text = ""
        deadline = time.monotonic() + 30
        while word not in text and time.monotonic() < deadline:
            try:
                text += os.read(terminal, 4096).decode()
            except OSError:
                break
        self.assertIn(word, text)
        return text


if __name__ == "__main__":
    main()
