#!/usr/bin/env python3
"""--reference=inline: measured in the program, which notices nothing; what does not fit there is said."""
import pathlib
import subprocess
import sys

from harness import laws, program, trace, versions
from harness.script import SUBJECTS, Script

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs"
ON = {"ATTNTRACE_OPTIONS": ""}


def traced(script, path, name, *options, **variables):
    return trace.run(script.attntrace, [script.python, path], script.work / name, ["--reference=inline", *options], {**ON, **variables})


def stored(variant):
    return all(int(size) > 0 for tensor in variant["tensors"] for size in tensor["sizes"])


def words_of(done):
    return {run["words"] for run in done.report["reference_runs"] if run["status"] == "skipped"}


def made(report):
    """Peaks of the runs that were made, by path, changes and call."""
    by_id = {variant["id"]: variant for variant in report["variants"]}
    tensors = lambda run: tuple((t["dtype"], *t["sizes"], *t["strides"]) for t in by_id[run["variants"][0]]["tensors"])
    return {(run["path"], *run["changes"], tensors(run)): run["total_peak_bytes"] for run in report["reference_runs"] if run["status"] == "ok"}


def check_matrix(script):
    done = traced(script, PROGRAMS / "sdpa_matrix.py", "matrix", "--reference-budget=0")
    broken = laws.broken(done.report, done.summary)
    script.expect(not broken, f"the laws hold: {broken}")
    by_id = {variant["id"]: variant for variant in done.report["variants"]}
    math = [(one, by_id[one["variants"][0]]) for one in done.report["findings"] if one["rule"] == "sdpa-math"]
    math = [(one, variant) for one, variant in math if stored(variant)]
    script.expect(len(math) >= 4, f"{len(math)} calls ran math")
    for one, variant in math:
        name = one["gates"][0]["text"][:40] if one["gates"] else one["ran"]
        if variant["dropout_p"]:
            script.expect(any("random numbers" in note for note in one["reference_notes"]), f"dropout is left: {one['reference_notes']}")
            continue
        script.expect(0 < int(one["fused_peak_bytes"]) < int(one["observed_peak_bytes"]), f"fused twin: {name}")
        script.expect(any(advice["proof"] == "proven" for advice in one["advice"]), f"proven advice: {name}")
        script.expect(not one["reference_notes"], f"the same path takes the same: {name} {one['reference_notes']}")
        script.expect(one["measured_in_program"], f"said to be measured in the program: {name}")
    for run in done.report["reference_runs"]:
        script.expect(run["in_program"], f"{run['path']} {run['changes']} was run in the program")
        script.expect("fused" not in {by_id[variant]["path"] for variant in run["variants"]}, f"{run['path']} of a call that stores")
        if run["checked"] and not run["alters_result"]:
            script.expect(float(run["max_difference"]) < 0.1, f"{run['path']} {run['changes']} is right: {run['max_difference']}")
    # As in a process of its own: the same code on the same shapes.
    after = trace.run(script.attntrace, [script.python, PROGRAMS / "sdpa_matrix.py"], script.work / "after", ["--reference-budget=0"], ON)
    there, here = made(after.report), made(done.report)
    both = set(there) & set(here)
    # What a library keeps from its first call (packed weights, scratch) is there already in one of the two, and not in the other.
    differ = [f"{one}: {here[one]}, {there[one]}" for one in both if abs(int(here[one]) - int(there[one])) > 64 << 10]
    script.expect(len(both) >= 10 and not differ, f"{len(both)} peaks equal those of --reference=after {differ}")
    text = subprocess.run([script.attntrace, "report", script.work / "matrix/run.attn"], capture_output=True, text=True).stdout
    script.expect("measured in the program on this CPU" in text, "the text says where")


def check_untouched(script):
    """Output, and with it every loss and the random states, is that of the untraced program."""
    subjects = [[script.python, SUBJECTS / "surroundings.py"]]
    for name in ("training_loop", "double_backward", "hand_written", "encoder", "checkpointing_model"):
        subject = program.load(name)
        if not versions.unmet(subject.requires, script.python):
            subjects.append(subject.command(script.python))
    for command in subjects:
        name = pathlib.Path(command[-1] if len(command) == 2 else command[1]).stem
        plain = subprocess.run(list(map(str, command)), env=trace.environment(), cwd=script.work, capture_output=True, text=True)
        done = trace.run(script.attntrace, command, script.work / name, ["--reference=inline", "--reference-budget=0"], ON)
        ours = "\n".join(line for line in done.stderr.splitlines() if "Warning" in line)
        theirs = "\n".join(line for line in plain.stderr.splitlines() if "Warning" in line)
        script.expect(plain.stdout == done.stdout, f"{name}: standard output is the same" if plain.stdout == done.stdout
                      else f"{name}: standard output\n{plain.stdout}--\n{done.stdout}")
        script.expect(ours == theirs, f"{name}: no warning more or less {ours} -- {theirs}" if ours != theirs else f"{name}: the same warnings")
        script.expect(plain.returncode == done.returncode, f"{name}: exit code {plain.returncode} and {done.returncode}")
        broken = laws.broken(done.report, done.summary)
        script.expect(not broken, f"{name}: the laws hold: {broken}")
        if name == "surroundings":
            made = [run for run in done.report["reference_runs"] if run["status"] == "ok"]
            lengths = {next(t["sizes"][-2] for t in variant["tensors"]) for run in made for variant in done.report["variants"]
                       if variant["id"] in run["variants"] and variant["tensors"]}
            script.expect(len(lengths) >= 8, f"runs for calls made in {len(lengths)} surroundings: {sorted(lengths)}")


def check_left_out(script):
    """Short memory, no time, flex_attention, a missing library: each is a line, and the program runs on."""
    done = traced(script, SUBJECTS / "large.py", "memory", "--reference-memory=1", "--reference-budget=0")
    script.expect(any("memory is short" in words for words in words_of(done)) and done.returncode == 0, f"memory: {words_of(done)}")
    script.expect(not [run for run in done.report["reference_runs"] if run["status"] == "ok" and run["path"] == "math"],
                  "what stores the scores is not run then")
    done = traced(script, SUBJECTS / "large.py", "time", "--reference-budget=1")
    script.expect(any("--reference-budget" in words for words in words_of(done)) and done.returncode == 0, f"time: {words_of(done)}")
    done = traced(script, SUBJECTS / "flex_between.py", "flex")
    script.expect(any("Python" in words for words in words_of(done)) and done.returncode == 0, f"flex: {words_of(done)}")
    real = next(script.attntrace.parent.glob("lib/attntrace/torch-*/libattntrace_reference_inline.so")).parent
    for library in script.attntrace.parent.glob("lib/attntrace/torch-*/libattntrace_agent.so"):
        folder = script.work / "agents" / library.parent.name
        folder.mkdir(parents=True)
        (folder / library.name).write_bytes(library.read_bytes())
    (script.work / "agents/libattntrace_preload.so").symlink_to(real.parent / "libattntrace_preload.so")
    done = traced(script, PROGRAMS / "hand_written.py", "missing", ATTNTRACE_AGENT_DIR=str(script.work / "agents"))
    spots = [spot["text"] for spot in done.report["blind_spots"] if spot["code"] == "reference-inline"]
    script.expect(done.returncode == 0 and len(spots) == 1, f"a missing library is a blind spot: {spots}")
    script.expect(any("quiet moment" in words for words in words_of(done)), f"and its runs were not made: {words_of(done)}")


def main():
    script = Script(__doc__, "inline")
    check_matrix(script)
    check_untouched(script)
    check_left_out(script)
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
