"""The environment of the traced program: the user's own, and ours; settings by variable and by option."""

import os
import re
import shutil
import sys

from harness import ATTNTRACE, PRELOAD, Case, main


class Environment(Case):
    def show(self, name, *options, **environment):
        result = self.run_it("-q", *options, "--", sys.executable, "-c", f"import os; print(os.environ.get({name!r}, '-'))", env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def test_ld_preload_is_extended(self):
        libc = next(line.split()[-1] for line in self.read("/proc/self/maps").decode().splitlines() if "/libc.so" in line or "/libc-" in line)
        entries = self.show("LD_PRELOAD", LD_PRELOAD=libc).split(":")
        self.assertEqual([os.path.basename(entries[0]), entries[1:]], [PRELOAD, [libc]])

    def test_every_other_variable_is_kept(self):
        plain = self.run_it(program="env").stdout.splitlines()
        traced = self.run_it("-q", "--", "env").stdout.splitlines()
        self.assertEqual([line for line in plain if not line.startswith("_=")],
                         [line for line in traced if not line.startswith(("LD_PRELOAD=", "ATTNTRACE_", "_="))])

    def test_options_of_the_variable_hold_and_the_command_line_wins(self):
        self.run_it("--", "true", env={"ATTNTRACE_OPTIONS": "quiet=1:output=a.attn"})
        self.assertEqual(self.here(), ["a.attn"])
        self.run_it("-o", "b.attn", "--", "true", env={"ATTNTRACE_OPTIONS": "quiet=1:output=a.attn"})
        self.assertEqual(self.here(), ["a.attn", "b.attn"])
        self.assertEqual(self.show("ATTNTRACE_OPTIONS", ATTNTRACE_OPTIONS="output=c.attn"), "output=c.attn")

    def test_an_unknown_option_is_refused_with_the_near_ones(self):
        for result in (self.run_it("--", "touch", "ran", env={"ATTNTRACE_OPTIONS": "quite=1"}), self.run_it("--quite", "--", "touch", "ran")):
            self.assertEqual(result.returncode, 2)
            self.assert_one_line(result.stderr, "quite", "quiet")
        self.assertEqual(self.here(), [])

    def test_help_lists_every_setting(self):
        listed = self.run_it("--", "true", env={"ATTNTRACE_OPTIONS": "help=1"})
        self.assertEqual(listed.returncode, 0)
        self.assertEqual(self.here(), [])
        overview = self.run_it("--help").stdout
        options = self.run_it("run", "--help").stdout
        keys = re.findall(r"^  [ *] ([a-z-]+)=", listed.stdout, re.MULTILINE)
        self.assertIn("error-exitcode", keys)
        for key in keys:
            self.assertIn(key, overview)
            self.assertIn("--" + key, options)

    def test_a_run_in_a_run_joins_it(self):
        result = self.run_it("-o", "x.attn", "--", ATTNTRACE, "-q", "--", "sh", "-c", "echo $ATTNTRACE_SPOOL_DIR; echo $LD_PRELOAD; exit 5")
        self.assertEqual(result.returncode, 5)
        spools, preload = result.stdout.splitlines()
        self.assertEqual(os.path.basename(spools), "x.attntrace.d")
        self.assertEqual(preload.count(PRELOAD), 1)
        self.assertEqual(self.here(), ["x.attn"])
        self.assertEqual(result.stderr.count("SUMMARY"), 1)

    def test_a_stale_spool_folder_of_the_environment_is_not_joined(self):
        self.assertEqual(os.path.basename(self.show("ATTNTRACE_SPOOL_DIR", "-o", "y.attn", ATTNTRACE_SPOOL_DIR=self.folder + "/gone")),
                         "y.attntrace.d")

    def test_an_installation_whose_path_has_a_blank(self):
        home = self.folder + "/a b:c"
        os.makedirs(home + "/lib")
        shutil.copy(ATTNTRACE, home + "/attntrace")
        source = os.path.dirname(ATTNTRACE) + "/lib/attntrace"
        os.mkdir(home + "/lib/attntrace")
        shutil.copy(source + "/" + PRELOAD, home + "/lib/attntrace")
        result = self.run_it("-q", "--", "sh", "-c", "echo ok", program=home + "/attntrace")
        self.assertEqual((result.stdout, result.returncode), ("ok\n", 0))
        self.assertNotIn("ld.so", result.stderr)
        self.assertEqual(os.listdir(self.environment["TMPDIR"]), [])

    def test_without_the_preload_the_program_still_runs(self):
        os.mkdir(self.folder + "/bare")
        shutil.copy(ATTNTRACE, self.folder + "/bare/attntrace")
        result = self.run_it("--", "sh", "-c", "echo ok; exit 3", program=self.folder + "/bare/attntrace")
        self.assertEqual((result.stdout, result.returncode), ("ok\n", 3))
        self.assert_one_line(result.stderr, PRELOAD, "doctor")


if __name__ == "__main__":
    main()
