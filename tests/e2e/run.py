#!/usr/bin/env python3
"""Traces programs of tests/programs and compares their reports with tests/golden.

    run.py --attntrace build/attntrace --python PY NAME... NAME@ENVIRONMENT...     or --all

A difference is printed, the new text is left beside the expected one as NAME.unapproved.txt (approve.py accepts it), the run's
folder is kept, and the command that repeats the run is printed. Exit code 77: skipped, the environment lacks something.
"""
import argparse
import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from harness import environments, golden, laws, program, text, trace, versions  # noqa: E402

SKIPPED = 77


def check(run, attntrace, python, work, patience):
    """(exit code, what to say)."""
    name, _, environment = run.partition("@")
    subject = program.load(name)
    environment = environment or environments.BASE
    series = {package: versions.series(python, package) for package in golden.BASE}
    if environment != environments.BASE:
        if series["torch"] != golden.BASE["torch"]:
            return SKIPPED, f"skipped: {environment} is made for PyTorch {golden.BASE['torch']}"
        python = environments.python(python, environment)
        series = {package: versions.series(python, package) for package in golden.BASE}
    lacking = versions.unmet(subject.requires, python)
    if lacking:
        return SKIPPED, f"skipped: {lacking}"
    folder = work / run
    shutil.rmtree(folder, ignore_errors=True)
    try:
        result = trace.run(attntrace, subject.command(python), folder, subject.options, subject.env, subject.timeout * patience)
    except subprocess.TimeoutExpired:
        return 1, f"still running after {subject.timeout * patience} s"
    again = f"\nrun folder: {folder}\nrepeat: {result.command}"
    wanted = -subject.signal if subject.signal else subject.exit
    if wanted is not None and result.returncode != wanted:
        return 1, f"exit {result.returncode}, expected {wanted}\n{result.stderr[-4000:]}{again}"
    if result.report is None:
        return 1, f"no report was written\n{result.stderr[-4000:]}{again}"
    errors = [f"law broken: {error}" for error in laws.broken(result.report, result.summary)]
    difference = golden.compare(name, series, text.render(result.report, result.returncode, environments.pinned(environment)))
    if difference:
        errors.append(difference)
    if errors:
        return 1, "\n".join(errors) + again
    shutil.rmtree(folder, ignore_errors=True)
    return 0, "as expected"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attntrace", required=True, type=pathlib.Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--work", type=pathlib.Path, help="folder for the runs, default: a temporary one")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--patience", type=int, default=1, metavar="N", help="N times the time limits, for a busy machine")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    names = program.names() if arguments.all else arguments.names
    if not names:
        parser.error("name a program, or --all")
    work = arguments.work or pathlib.Path(tempfile.mkdtemp(prefix="attntrace-e2e-"))
    codes = []
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        one = lambda name: (name, *check(name, arguments.attntrace.resolve(), arguments.python, work.resolve(), arguments.patience))
        for name, code, said in pool.map(one, names):
            codes.append(code)
            print(f"{name}: {said}", flush=True)
    if len(names) > 1:
        print(f"{codes.count(0)} passed, {codes.count(1)} failed, {codes.count(SKIPPED)} skipped of {len(names)}")
    return 1 if 1 in codes else SKIPPED if codes == [SKIPPED] else 0


if __name__ == "__main__":
    sys.exit(main())
