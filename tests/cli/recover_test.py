"""When the launcher dies too."""

import os
import signal
import time

from harness import Case, main


class Recover(Case):
    def killed_run(self):
        process = self.start("-o", "x.attn", "--", "sh", "-c", "echo $$; exec sleep 60")
        child = int(process.stdout.readline())
        process.kill()
        process.wait()
        return child

    def test_after_kill_9_of_both(self):
        os.kill(self.killed_run(), signal.SIGKILL)
        self.assertEqual(self.here(), ["x.attntrace.d"])
        self.assertIn("attntrace recover x.attntrace.d", self.run_it("-o", "other.attn", "--", "true").stderr)
        self.assertIn("attntrace recover x.attntrace.d", self.run_it("doctor").stdout)
        # The same name again is no reason to lose the old spools.
        again = self.run_it("-q", "-o", "x.attn", "--", "true")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.here(), ["other.attn", "x.attn", "x.attntrace.d"])
        refused = self.run_it("recover", "x.attntrace.d")
        self.assertEqual(refused.returncode, 2)
        self.assert_one_line(refused.stderr, "x.attn exists")
        result = self.run_it("recover", "x.attntrace.d", "-o", "z.attn")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.summary(result)["report"], "z.attn")
        self.assertEqual(self.here(), ["other.attn", "x.attn", "z.attn"])
        self.assertIn("sleep 60", self.run_it("report", "z.attn", "--format", "json").stdout)

    def test_not_while_the_launcher_writes(self):
        process = self.start("-o", "x.attn", "--", "sh", "-c", "echo; exec sleep 60")
        process.stdout.readline()
        refused = self.run_it("recover", "x.attntrace.d")
        self.assertEqual(refused.returncode, 2)
        self.assert_one_line(refused.stderr, str(process.pid), "-f")
        forced = self.run_it("recover", "-q", "-f", "x.attntrace.d", "-o", "early.attn")
        self.assertEqual(forced.returncode, 0, forced.stderr)
        self.assertEqual(self.here(), ["early.attn", "x.attntrace.d"])
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(self.here(), ["early.attn", "x.attn"])

    def test_traced_processes_that_still_run_are_named(self):
        child = self.killed_run()
        with open(f"/proc/{child}/stat") as file:
            ticks = file.read().rsplit(")", 1)[1].split()[19]
        open(f"{self.cwd}/x.attntrace.d/{child}-{ticks}-0.spool", "w").close()
        refused = self.run_it("recover", "x.attntrace.d")
        self.assertEqual(refused.returncode, 2)
        self.assert_one_line(refused.stderr, str(child))
        os.kill(child, signal.SIGKILL)
        time.sleep(0.1)
        os.remove(f"{self.cwd}/x.attntrace.d/{child}-{ticks}-0.spool")
        self.assertEqual(self.run_it("recover", "x.attntrace.d").returncode, 0)

    def test_a_folder_of_somebody_else(self):
        os.mkdir(self.cwd + "/data.attntrace.d")
        with open(self.cwd + "/data.attntrace.d/run.json", "w") as file:
            file.write("{}")
        result = self.run_it("recover", "data.attntrace.d")
        self.assertEqual(result.returncode, 2)
        self.assert_one_line(result.stderr, "run.json")


if __name__ == "__main__":
    main()
