#!/usr/bin/env python3
"""Reference runs after a program: every math call gets a fused twin and proven advice, and no failure of theirs is the run's."""
import json
import pathlib
import subprocess
import sys

from harness import trace
from harness.script import SUBJECTS, Script

PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "programs"
ON = {"ATTNTRACE_OPTIONS": ""}


def reference_folder(script):
    version = subprocess.check_output([script.python, "-c", "import torch; print(torch.__version__.split('+')[0])"], text=True).strip()
    return next(script.attntrace.parent.glob(f"lib/attntrace/torch-{version}*/attntrace-reference")).parent


def stored(variant):
    return all(int(size) > 0 for tensor in variant["tensors"] for size in tensor["sizes"])


def check_matrix(script):
    command = [script.python, PROGRAMS / "sdpa_matrix.py"]
    done = trace.run(script.attntrace, command, script.work / "matrix", ["--reference-budget=0"], ON)
    by_id = {variant["id"]: variant for variant in done.report["variants"]}
    findings = [(one, by_id[one["variants"][0]]) for one in done.report["findings"]]
    math = [one for one, variant in findings if one["rule"] == "sdpa-math" and stored(variant)]
    script.expect(len(math) >= 4, f"{len(math)} calls ran math")
    for one in math:
        name = one["gates"][0]["text"][:40] if one["gates"] else one["ran"]
        script.expect(0 < int(one["fused_peak_bytes"]) < int(one["observed_peak_bytes"]), f"fused twin: {name}")
        script.expect(any(advice["proof"] == "proven" for advice in one["advice"]), f"proven advice: {name}")
        script.expect(not one["reference_notes"], f"the same path takes the same in the reference: {name} {one['reference_notes']}")
    altering = {advice["change"] for one in math for advice in one["advice"] if advice["alters_result"]}
    script.expect(altering <= {"no-dropout", "move-dropout", "detach-mask"} and altering, f"said to alter the result: {altering}")
    for run in done.report["reference_runs"]:
        named = {by_id[variant]["path"] for variant in run["variants"]}
        if "fused" in named:
            script.expect(False, f"a fused call was run again: {run}")
        if run["checked"] and not run["alters_result"]:
            script.expect(float(run["max_difference"]) < 0.1, f"{run['path']} {run['changes']} is right: {run['max_difference']}")
    text = subprocess.run([script.attntrace, "report", script.work / "matrix/run.attn"], capture_output=True, text=True).stdout
    script.expect("fused   same shapes: " in text and "(proven, " in text, "the text says so")


def check_fused(script):
    done = trace.run(script.attntrace, [script.python, PROGRAMS / "checkpointing.py"], script.work / "fused", [], ON)
    script.expect(not done.report["reference_runs"] and not done.report["findings"], "a fused program gets none")


def check_flex(script):
    """flex_attention is run, dense and compiled, by the program's own Python."""
    done = trace.run(script.attntrace, [script.python, PROGRAMS / "flex_plain.py"], script.work / "flex", ["--reference-budget=0"], ON)
    runs = {run["path"]: run for run in done.report["reference_runs"]}
    script.expect(runs.get("flex-dense", {}).get("status") == "ok", f"dense: {runs.get('flex-dense')}")
    script.expect(runs.get("flex-compiled", {}).get("status") == "ok", f"compiled: {runs.get('flex-compiled')}")
    for one in done.report["findings"]:
        proven = [advice for advice in one["advice"] if advice["proof"] == "proven"]
        script.expect(int(one["fused_peak_bytes"]) > 0 and proven, f"{one['rule']}: fused twin, and torch.compile is proven")


def check_flex_masks(script):
    """A causal block mask is read, and made anew; any other is said to be left out."""
    done = trace.run(script.attntrace, [script.python, SUBJECTS / "flex_between.py"], script.work / "causal", ["--reference-budget=0"], ON)
    contents = {variant["mask_content"] for variant in done.report["variants"] if variant["backend"] == "flex-dense"}
    script.expect(contents == {"plain-causal"}, f"the causal block mask is read: {contents}")
    notes = [note for one in done.report["findings"] for note in one["reference_notes"]]
    runs = [run for run in done.report["reference_runs"] if run["path"].startswith("flex-")]
    script.expect(not notes and len(runs) == 2 and all(run["status"] == "ok" for run in runs), f"and made anew: {notes} {runs}")
    right = [float(run["max_difference"]) for run in done.report["reference_runs"] if run["checked"]]
    script.expect(len(right) == 3 and max(right) < 1e-5, f"the causal twins compute what it does: {right}")
    done = trace.run(script.attntrace, [script.python, PROGRAMS / "flex_plain.py"], script.work / "window", ["--reference-budget=0"], ON)
    notes = [note for one in done.report["findings"] for note in one["reference_notes"]]
    script.expect(any("without the program's block mask" in note for note in notes), f"a window is left out: {notes}")


def check_later(script):
    """A report made without reference runs gets them afterwards."""
    done = trace.run(script.attntrace, [script.python, PROGRAMS / "encoder.py"], script.work / "later", ["--reference=off"], ON)
    if not done.report["findings"]:
        return script.expect(False, "encoder.py has a finding")
    script.expect(not done.report["reference_runs"], "--reference=off makes none")
    path = script.work / "later/run.attn"
    added = subprocess.run([script.attntrace, "report", "--reference", path], capture_output=True, text=True)
    report = trace.read_report(script.attntrace, path)
    script.expect(added.returncode == 0 and report["reference_runs"], f"report --reference adds them {added.stderr}")
    # A machine without the agent for that PyTorch, and one whose reference cannot run: one line, and the file stays as it is.
    before = path.read_bytes()
    (script.work / "no-agents").mkdir()
    broken = agents_with(script, "broken", "#!/bin/sh\nread line; exit 3\n")
    for name, folder, words in (("no agent", script.work / "no-agents", "is installed here"), ("broken", broken, "exit code 3")):
        done = subprocess.run([script.attntrace, "report", "--reference", path], capture_output=True, text=True,
                              env={**trace.environment(), "ATTNTRACE_AGENT_DIR": str(folder)})
        lines = done.stderr.splitlines()
        script.expect(done.returncode == 2 and not done.stdout and len(lines) == 1 and words in lines[0],
                      f"{name}: exit {done.returncode}, {lines}")
    script.expect(path.read_bytes() == before, "the report is as it was")


def agents_with(script, name, text):
    """A folder of agents whose attntrace-reference is a script; none where `text` is empty."""
    real = reference_folder(script)
    agents = script.work / f"agents-{name}"
    folder = agents / real.name
    folder.mkdir(parents=True)
    for library in real.glob("libattntrace_agent.so"):
        (folder / library.name).symlink_to(library)
    if text:
        (folder / "attntrace-reference").write_text(text)
        (folder / "attntrace-reference").chmod(0o755)
    (agents / "libattntrace_preload.so").symlink_to(real.parent / "libattntrace_preload.so")
    return agents


def check_failures(script):
    """A reference that dies, hangs or is not there is said, and the run's exit code stays the program's."""
    oom = 'n=0; while read line; do n=$((n+1)); echo "id=$n status=oom words=not%20enough%20memory"; done'
    cases = {
        "runs out of memory": (f"#!/bin/sh\n{oom}\n", "oom", "not enough memory"),
        "is no program": ("\x7fELF", "error", "attntrace-reference"),
        "dies": ("#!/bin/sh\nread line; kill -SEGV $$\n", "error", "signal 11"),
        "hangs": ("#!/bin/sh\nexec sleep 60\n", "skipped", "--reference-budget"),
        "babbles": ("#!/bin/sh\nread line; echo what=ever\n", "error", "cannot read"),
    }
    for name, (text, status, words) in cases.items():
        agents = agents_with(script, name.replace(" ", "-"), text)
        done = trace.run(script.attntrace, [script.python, PROGRAMS / "hand_written.py"], script.work / name,
                         ["--reference-budget=3"], {**ON, "ATTNTRACE_AGENT_DIR": str(agents)})
        runs = done.report["reference_runs"] if done.report else []
        script.expect(done.returncode == 0 and runs, f"{name}: exit {done.returncode}, {len(runs)} runs")
        script.expect(bool(runs) and runs[0]["status"] == status and words in runs[0]["words"], f"{name}: {json.dumps(runs[:1])}")
        notes = [note for one in done.report["findings"] for note in one["reference_notes"]] if done.report else []
        script.expect(any(words in note for note in notes), f"{name} is a line of the finding: {notes}")
    done = trace.run(script.attntrace, [script.python, PROGRAMS / "hand_written.py"], script.work / "none", ["-v"],
                     {**ON, "ATTNTRACE_AGENT_DIR": str(agents_with(script, "none", ""))})
    said = [line for line in done.stderr.splitlines() if "no reference runs: no attntrace-reference" in line]
    script.expect(done.returncode == 0 and len(said) == 1 and not done.report["reference_runs"], f"no reference at all: {said}")


def main():
    script = Script(__doc__, "reference")
    check_matrix(script)
    check_fused(script)
    check_flex(script)
    check_flex_masks(script)
    check_later(script)
    check_failures(script)
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
