"""Where the report goes, what is never overwritten, and what is left when it cannot be written."""

import json
import os
import pty
import re
import socket
import struct
import subprocess

from harness import ATTNTRACE, Case, main


class Reports(Case):
    def test_standard_name(self):
        with open(self.cwd + "/train.py", "w") as file:
            file.write("")
        process = self.start("-q", "--", "sh", "train.py")
        process.communicate(timeout=30)
        self.assertEqual(self.here(".attn"), [f"attntrace-train.{process.pid}.attn"])
        self.assertEqual(self.here(".attntrace.d"), [])
        process = self.start("-q", "--", "true", env={"RANK": "7"})
        process.communicate(timeout=30)
        self.assertIn(f"attntrace-true.{process.pid}.rank7.attn", self.here())

    def test_patterns(self):
        result = self.run_it("-q", "-o", "%h-%r.attn", "--", "true", env={"RANK": "2"})
        name = socket.gethostname() + "-2.attn"
        self.assertEqual(self.here(), [name])
        self.assertEqual(self.summary(result)["report"], name)
        result = self.run_it("-o", "%x", "--", "touch", "ran")
        self.assertEqual(result.returncode, 2)
        self.assert_one_line(result.stderr, "%x")
        self.assertNotIn("ran", self.here())

    def test_nothing_is_overwritten_unasked(self):
        with open(self.cwd + "/x.attn", "w") as file:
            file.write("precious")
        result = self.run_it("-o", "x.attn", "--", "touch", "ran")
        self.assertEqual(result.returncode, 2)
        self.assert_one_line(result.stderr, "x.attn", "-f")
        self.assertEqual(self.here(), ["x.attn"])
        self.assertEqual(self.read("x.attn"), b"precious")
        self.assertEqual(self.run_it("-q", "-f", "-o", "x.attn", "--", "true").returncode, 0)
        self.assertNotEqual(self.read("x.attn"), b"precious")

    def test_a_device_is_never_replaced(self):
        self.assertEqual(self.run_it("-f", "-o", "/dev/null", "--", "true").returncode, 2)

    def test_a_report_that_cannot_be_written(self):
        result = self.run_it("-o", "none/x.attn", "--", "sh", "-c", "echo ran; exit 3")
        self.assertEqual(result.stdout, "ran\n")
        self.assertEqual(result.returncode, 3)
        self.assertEqual(self.summary(result)["report"], "-")
        kept = self.environment["TMPDIR"] + "/x.attntrace.d"
        self.assertIn(f"attntrace recover {kept} -o FILE", result.stderr)
        recovered = self.run_it("recover", "-q", kept, "-o", "y.attn")
        self.assertEqual(recovered.returncode, 0, recovered.stderr)
        self.assertEqual(self.here(), ["y.attn"])
        self.assertFalse(os.path.exists(kept))
        run = json.loads(self.run_it("report", "y.attn", "--format", "json").stdout)["run"]
        self.assertEqual((run["ended"], run["exit_code"], run["command"][0]), ("exit", 3, "sh"))

    def test_a_folder_that_vanishes_in_the_run(self):
        os.mkdir(self.cwd + "/out")
        result = self.run_it("-o", "out/x.attn", "--", "sh", "-c", "rm -r out; exit 4")
        self.assertEqual(result.returncode, 4)
        self.assertIn("attntrace: ", result.stderr)

    def test_keep_spool(self):
        self.assertEqual(self.run_it("-q", "-o", "x.attn", "--keep-spool", "--", "true").returncode, 0)
        self.assertEqual(self.here(), ["x.attn", "x.attntrace.d"])
        # Kept on purpose: nobody is reminded of it.
        self.assertNotIn("recover", self.run_it("--", "true").stderr)

    def test_quiet_is_one_line_and_colour_is_for_terminals(self):
        self.assertEqual(self.run_it("-q", "--", "true").stderr.count("\n"), 1)
        self.assertNotIn("\033", self.run_it("--", "true").stderr)

    def on_terminal(self, *arguments, **environment):
        """What is printed to a terminal."""
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)
        process = subprocess.Popen([ATTNTRACE, *arguments], cwd=self.cwd, env={**self.environment, "TERM": "xterm", **environment},
                                   stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs)
        os.close(theirs)
        printed = b""
        try:
            while block := os.read(ours, 65536):
                printed += block
        except OSError:  # the other end is closed
            pass
        self.assertEqual(process.wait(timeout=30), 0, printed)
        return printed.decode()

    def test_no_color_is_obeyed_on_a_terminal(self):
        self.assertIn("\033[", self.on_terminal("-o", "x.attn", "--", "true"))
        self.assertIn("\033[", self.on_terminal("report", "x.attn"))
        self.assertIn("\033[", self.on_terminal("report", "x.attn", NO_COLOR=""))  # set but empty is not set
        self.assertNotIn("\033", self.on_terminal("-o", "y.attn", "--", "true", NO_COLOR="1"))
        self.assertNotIn("\033", self.on_terminal("report", "x.attn", NO_COLOR="1"))
        self.assertNotIn("\033", self.on_terminal("report", "x.attn", TERM="dumb"))

    def test_a_report_of_a_newer_attntrace(self):
        self.assertEqual(self.run_it("-q", "-o", "x.attn", "--", "true").returncode, 0)
        plain = self.run_it("report", "x.attn")
        # Fields of a later schema, and its format number; the end of the file holds the size of all before it.
        whole = self.read("x.attn")
        body = whole[:-9] + b"\x08\x63" + b"\xa2\x38\x0bof tomorrow"
        with open(self.cwd + "/x.attn", "wb") as file:
            file.write(body + whole[-9:-8] + struct.pack("<Q", len(body)))
        newer = self.run_it("report", "x.attn")
        self.assertEqual((newer.returncode, newer.stderr), (0, ""))
        said = [line for line in newer.stdout.splitlines() if "newer attntrace" in line]
        self.assertEqual(len(said), 1, newer.stdout)
        self.assertIn("format 99", re.sub(r"\s+", " ", newer.stdout))
        self.assertEqual(newer.stdout.splitlines()[-1].split(" blind=")[0], plain.stdout.splitlines()[-1].split(" blind=")[0])
        shown = json.loads(self.run_it("report", "x.attn", "--format", "json").stdout)
        self.assertEqual([spot["code"] for spot in shown["blind_spots"]].count("newer-format"), 1)

    def test_report_errors_are_one_line(self):
        for arguments in (["report", "none.attn"], ["report"], ["report", "x", "--format", "yaml"], ["dump", "none"], ["recover", "."],
                          ["explain", "no-such-rule"], ["report", "x", "--fromat", "json"], ["doctor", "extra"]):
            result = self.run_it(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assert_one_line(result.stderr)
            self.assertEqual(result.stdout, "")


if __name__ == "__main__":
    main()
