"""Environments with other packages over those of the traced Python: tests/requirements/NAME.txt, made by tools/python-overlay."""
import functools
import re
import subprocess

from harness import golden
from harness.program import TESTS

BASE = "base"  # the traced Python as it is


def _requirements(name):
    return TESTS / "requirements" / f"{name}.txt"


@functools.lru_cache
def python(base, name):
    """The environment's Python; installed first where it is missing, which needs the network."""
    if name == BASE:
        return base
    done = subprocess.run([TESTS.parent / "tools/python-overlay", base, _requirements(name)], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"the environment {name} could not be made")
    return done.stdout.strip()


def pinned(name):
    """The packages that only this environment has, in one version: their line numbers are the same in every run."""
    if name == BASE:
        return frozenset()
    return frozenset(re.findall(r"^([\w-]+)==", _requirements(name).read_text(), re.MULTILINE)) - golden.BASE.keys()
