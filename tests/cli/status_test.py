"""How a traced program ends is how attntrace ends; what it reads and prints is its own."""

import os
import signal

from harness import Case, main


class Status(Case):
    def test_exit_codes(self):
        for code in (0, 1, 3, 127, 255):
            self.assertEqual(self.run_it("-q", "--", "sh", "-c", f"exit {code}").returncode, code)

    def test_death_by_signal(self):
        for number in (signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL, signal.SIGINT, signal.SIGABRT, signal.SIGUSR1, signal.SIGPIPE):
            result = self.run_it("-q", "--", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(result.returncode, -number)
            self.assertEqual(self.summary(result)["status"], "untraced")

    def test_streams_are_the_programs_own(self):
        result = self.run_it("--", "sh", "-c", "cat; echo err >&2", input="a\0b\n")
        self.assertEqual(result.stdout, "a\0b\n")
        self.assertTrue(result.stderr.startswith("err\n"))

    def test_closed_stderr_does_not_cost_the_status(self):
        result = self.run_it("--", "sh", "-c", "exec 2>&-; exit 5", preexec_fn=lambda: os.close(2))
        self.assertEqual(result.returncode, 5)
        read, write = os.pipe()
        os.close(read)
        result = self.run_it("--", "sh", "-c", "exit 6", preexec_fn=lambda: os.dup2(write, 2))
        os.close(write)
        self.assertEqual(result.returncode, 6)

    def test_not_found_and_not_executable(self):
        result = self.run_it("--", "no-such-program-here")
        self.assertEqual(result.returncode, 127)
        self.assert_one_line(result.stderr, "no-such-program-here")
        with open(self.cwd + "/data", "w") as file:
            file.write("x")
        result = self.run_it("--", "./data")
        self.assertEqual(result.returncode, 126)
        self.assertNotIn("for the command of attntrace", result.stderr)  # a path is no slip of the pen
        self.assert_one_line(result.stderr, "./data")
        self.assertEqual(self.here(), ["data"])

    def test_the_programs_signal_setup_is_untouched(self):
        shown = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status"
        plain = self.run_it("-c", shown, program="sh")
        traced = self.run_it("-q", "--", "sh", "-c", shown)
        self.assertEqual(traced.stdout, plain.stdout)
        ignoring = dict(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(self.run_it("-q", "--", "sh", "-c", shown, **ignoring).stdout,
                         self.run_it("-c", shown, program="sh", **ignoring).stdout)

    def test_a_parent_that_ignores_its_children(self):
        result = self.run_it("-q", "--", "sh", "-c", "exit 4", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(result.returncode, 4)

    def test_a_daemon_left_behind_is_not_waited_for(self):
        result = self.run_it("-q", "--", "sh", "-c", "sleep 50 >/dev/null 2>&1 & echo $!", timeout=30)
        os.kill(int(result.stdout), signal.SIGKILL)
        self.assertEqual(result.returncode, 0)


if __name__ == "__main__":
    main()
