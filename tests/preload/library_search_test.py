"""A library that loads a neighbour through its own RUNPATH still finds it (cuDNN and its sub-libraries)."""

import sys
import unittest

import harness

OUTER = harness.NATIVE_PROGRAMS / "libouter.so"
PROGRAM = f"import ctypes; print(ctypes.CDLL({str(OUTER)!r}).outer())"


class LibrarySearch(unittest.TestCase):
    def test_runpath_of_the_caller_counts(self):
        job = harness.Job()
        self.addCleanup(job.close)
        for program in (PROGRAM, "import torch; " + PROGRAM, PROGRAM + "; import torch; " + PROGRAM):
            plain = harness.run_untraced(sys.executable, "-c", program)
            self.assertEqual(set(plain.stdout.split()), {"42"}, plain.stderr)
            traced = job.python(program)
            self.assertEqual((traced.returncode, traced.stdout, traced.stderr), (0, plain.stdout, plain.stderr))


if __name__ == "__main__":
    unittest.main()
