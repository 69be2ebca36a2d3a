"""What the check_*.py scripts share: arguments, and a list of expectations that is printed when one fails."""
import argparse
import pathlib
import shutil

SUBJECTS = pathlib.Path(__file__).resolve().parents[1] / "subjects"


class Script:
    """`attntrace`, `python` and a fresh folder `work`; `expect` records, `end` is the exit code."""

    def __init__(self, doc, name):
        parser = argparse.ArgumentParser(description=doc)
        parser.add_argument("--attntrace", required=True, type=pathlib.Path)
        parser.add_argument("--python", required=True)
        parser.add_argument("--work", required=True, type=pathlib.Path)
        parser.add_argument("rest", nargs="*")
        arguments = parser.parse_args()
        self.attntrace, self.python, self.rest = arguments.attntrace.resolve(), arguments.python, arguments.rest
        self.work = arguments.work.resolve() / name
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.failures = 0

    def expect(self, holds, text, detail=""):
        """`detail` is said only where it failed."""
        print(f"ok      {text}" if holds else f"FAILED  {text}" + (f"\n{detail}" if detail else ""), flush=True)
        self.failures += not holds

    def end(self):
        if self.failures:
            print(f"run folder: {self.work}")
        else:
            shutil.rmtree(self.work, ignore_errors=True)
        return 1 if self.failures else 0
