"""Runs attntrace on a command and reads what it left."""
import dataclasses
import json
import os
import pathlib
import shlex
import subprocess


@dataclasses.dataclass
class Result:
    returncode: int
    stdout: str
    stderr: str
    report: dict   # report --format json; None where no report was written
    summary: str   # the SUMMARY line, "" where none was printed
    command: str   # to do the same by hand


def environment(extra=()):
    """Ours, made the same for every run: two threads, nothing of attntrace from outside, no colour."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("ATTNTRACE_")}
    env.update(OMP_NUM_THREADS="2", NO_COLOR="1", PYTHONDONTWRITEBYTECODE="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    # What a fused kernel would take is measured by the tests of the reference alone.
    env.update(ATTNTRACE_OPTIONS="reference=off")
    env.update(extra)
    return env


def read_report(attntrace, path):
    done = subprocess.run([attntrace, "report", str(path), "--format", "json"], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise AssertionError(f"attntrace report {path} failed with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)


def run(attntrace, command, folder, options=(), env=(), timeout=180):
    """Traces `command` with `folder` as working directory. The report is folder/run.attn."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "run.attn"
    line = [str(attntrace), "-o", str(report), "-f", *options, "--", *map(str, command)]
    done = subprocess.run(line, cwd=folder, env=environment(env), capture_output=True, text=True, timeout=timeout,
                          errors="replace")
    (folder / "stdout").write_text(done.stdout)
    (folder / "stderr").write_text(done.stderr)
    last = done.stderr.rstrip("\n").rpartition("\n")[2]
    by_hand = f"cd {shlex.quote(str(folder))} && OMP_NUM_THREADS=2 {shlex.join(line)}"
    return Result(done.returncode, done.stdout, done.stderr, read_report(attntrace, report) if report.exists() else None,
                  last if last.startswith("SUMMARY ") else "", by_hand)
