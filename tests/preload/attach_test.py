"""The agent is loaded at the right moment, once, and for the right PyTorch; where it is not, the program runs as ever."""

import os
import pathlib
import shutil
import sys
import unittest

import harness

IMPORT_TORCH = "import torch; print(torch.__version__)"


class Case(unittest.TestCase):
    def job(self, **arguments):
        job = harness.Job(**arguments)
        self.addCleanup(job.close)
        return job

    def assert_runs_as_untraced(self, result, *command):
        plain = harness.run_untraced(*command)
        self.assertEqual((result.returncode, result.stdout), (plain.returncode, plain.stdout))


class Python(Case):
    def test_import_of_torch_loads_the_agent_once(self):
        job = self.job()
        result = job.python(IMPORT_TORCH + "; import torch.nn, json, decimal, sqlite3")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, harness.torch_version() + "\n", ""))
        (start_word, start), (exit_word, _) = job.only_log()
        self.assertEqual((start_word, exit_word), ("start", "at_exit"))
        self.assertEqual(start["size"], "1")
        self.assertEqual(start["torch"], harness.torch_version())
        self.assertEqual(start["has_python"], "1")
        self.assertEqual(start["spool"], str(job.spool))
        self.assertTrue(os.path.samefile(start["library"], harness.torch_folder() / "lib" / "libtorch_cpu.so"))
        self.assertEqual(job.untraced(), [])

    def test_python_without_torch_is_left_alone(self):
        job = self.job()
        result = job.python("import json, sqlite3; print(1)")
        self.assertEqual((result.stdout, result.stderr), ("1\n", ""))
        self.assertEqual((job.logs(), list(job.spool.iterdir())), ({}, []))

    def test_only_an_uncaught_exception_reaches_the_agent(self):
        job = self.job()
        program = IMPORT_TORCH + "; import sys; sys.audit('import', 1); sys.audit('sys.other'); id(1); raise KeyError(None)"
        result = job.python(program)
        self.assert_runs_as_untraced(result, sys.executable, "-c", program)
        self.assertIn("KeyError: None", result.stderr)
        self.assertEqual([word for word, _ in job.only_log()], ["start", "audit", "at_exit"])

    def test_sys_exit_and_signals_pass(self):
        for program in ("sys.exit(3)", "os.kill(os.getpid(), 15)", "os._exit(5)"):
            job = self.job()
            program = "import os, sys, torch; " + program
            self.assert_runs_as_untraced(job.python(program), sys.executable, "-c", program)
            self.assertEqual(job.only_log()[0][0], "start")

    def test_libtorch_preloaded_by_the_user(self):
        job = self.job()
        library = harness.torch_folder() / "lib" / "libtorch_cpu.so"
        result = job.python("import json; print(1)", LD_PRELOAD=f"{library}:{harness.PRELOAD}")
        self.assertEqual((result.returncode, result.stdout), (0, "1\n"), result.stderr)
        self.assertEqual([word for word, _ in job.only_log()], ["start", "at_exit"])

    def test_environment_changed_by_the_program(self):
        job = self.job()
        result = job.python("import os; os.environ.clear(); os.environ['ATTNTRACE_SPOOL_DIR'] = '/'; import torch; print(1)")
        # The fake agent finds its log by the environment too, so the spool folder tells: no complaint in it, and none printed.
        self.assertEqual((result.stdout, result.stderr, job.untraced()), ("1\n", "", []))


class NotTraced(Case):
    def test_without_spool_folder_nothing_happens(self):
        job = self.job()
        result = job.python(IMPORT_TORCH, ATTNTRACE_SPOOL_DIR=None)
        self.assertEqual((result.returncode, result.stderr, job.logs()), (0, "", {}))

    def test_spool_folder_that_is_not_there(self):
        job = self.job()
        for folder in (str(job.root / "gone"), "/dev/null", "x" * 5000):
            result = job.python(IMPORT_TORCH, ATTNTRACE_SPOOL_DIR=folder)
            self.assertEqual((result.returncode, result.stderr, job.logs()), (0, "", {}))

    def test_missing_agent_is_one_line_for_the_job(self):
        job = self.job(agents=["torch-1.0.0", "torch-1.1.0-oldabi"])
        results = [job.python(IMPORT_TORCH) for _ in range(2)]
        for result in results:
            self.assertEqual((result.returncode, result.stdout), (0, harness.torch_version() + "\n"))
        self.assertEqual(results[1].stderr, "")
        line = results[0].stderr
        self.assertEqual(line.count("\n"), 1)
        self.assertTrue(line.startswith("attntrace: "))
        for part in (harness.torch_version(), "torch-1.0.0", "torch-1.1.0-oldabi", "make build PYTHON=", "untraced"):
            self.assertIn(part, line)
        # A wheel's environment is named, so that the command can be copied as it is.
        python = line.split("PYTHON=")[1].strip()
        self.assertTrue(os.path.samefile(pathlib.Path(python).parent.parent, sys.prefix), python)
        self.assertEqual(len(job.untraced()), 2)
        for text in job.untraced():
            self.assertEqual(text.count("\n"), 1)
            self.assertIn(harness.torch_version(), text)

    def test_no_agent_at_all(self):
        job = self.job(agents=[])
        self.assertIn("installed there: none", job.python(IMPORT_TORCH).stderr)

    def test_agent_that_refuses(self):
        job = self.job()
        result = job.python(IMPORT_TORCH, FAKE_AGENT_REFUSE="the moon is full")
        self.assertEqual((result.returncode, result.stdout), (0, harness.torch_version() + "\n"))
        self.assertIn("refused: the moon is full", result.stderr)
        self.assertEqual([word for word, _ in job.only_log()], ["refuse"])
        self.assertIn("the moon is full", job.untraced()[0])

    def test_agent_of_another_build(self):
        job = self.job()
        result = job.python(IMPORT_TORCH, FAKE_AGENT_SIZE="8")
        self.assertEqual(result.returncode, 0)
        self.assertIn("built for another preload", result.stderr)
        self.assertEqual([word for word, _ in job.only_log()], ["start"])

    def test_agent_that_cannot_be_loaded(self):
        job = self.job()
        (job.agents / harness.agent_folder() / "libattntrace_agent.so").write_text("not a library\n")
        result = job.python(IMPORT_TORCH)
        self.assertEqual(result.returncode, 0)
        self.assertIn("cannot be loaded", result.stderr)
        self.assertEqual(len(job.untraced()), 1)


class Native(Case):
    program = harness.NATIVE_PROGRAMS / "native_allocations"

    def test_program_that_links_libtorch_is_attached_at_main(self):
        for way in ("return", "exit"):
            job = self.job()
            # What the heap gives back is overwritten, so that a look into PyTorch's block table after its end shows.
            result = job.run(self.program, way, 7, MALLOC_PERTURB_="165")
            self.assertEqual((result.returncode, result.stdout, result.stderr), (7, "done\n", ""))
            (start_word, start), (exit_word, _) = job.only_log()
            self.assertEqual((start_word, exit_word), ("start", "at_exit"))
            self.assertEqual((start["torch"], start["has_python"]), (harness.torch_version(), "0"))

    def test_agents_beside_the_preload(self):
        job = self.job()
        preload = shutil.copy(harness.PRELOAD, job.agents)
        result = job.run(self.program, "return", 0, LD_PRELOAD=preload, ATTNTRACE_AGENT_DIR=None)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(job.only_log()[0][0], "start")

    def test_libtorch_loaded_late_is_said_at_exit(self):
        job = self.job()
        result = job.run(harness.NATIVE_PROGRAMS / "native_late_torch", harness.torch_folder() / "lib" / "libtorch_cpu.so")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "loaded\n", ""))
        self.assertEqual(len(job.untraced()), 1)
        self.assertIn("after the program had started", job.untraced()[0])

    def test_programs_without_libtorch_leave_no_trace(self):
        job = self.job()
        result = job.run("/bin/sh", "-c", "echo $((40 + 2)); exit 9")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (9, "42\n", ""))
        self.assertEqual(list(job.spool.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
