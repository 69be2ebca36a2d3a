"""Checks of reference runs on a GPU: the measured matrix from end to end, and the figures of the long call. See checks.py."""

import json

from harness import equal, expect, number

# MiB over the start in (1, 8, 4096, 64) bf16, forward and backward of a first call, as measured before attntrace was written.
LONG = {"math": 2148, "flex-dense": 3369}
LONG_AT_MOST = {"cudnn, causal": 40, "flex-compiled": 28}  # less was seen since
SLACK = 4096  # bytes: seeds and counters of kernels, each rounded up to the allocator's 512


def stored(variant):
    return all(int(size) > 0 for tensor in variant["tensors"] for size in tensor["sizes"])


def call_of(variant):
    return {"tensors": variant["tensors"], "causal": variant.get("causal", False), "gqa": variant.get("gqa", False),
            "dropout_p": variant.get("dropout_p", 0), "scale": variant["scale"] if variant.get("scale_given") else None}


def held_against_statistics(job, report, name, cudnn):
    """Every run that PyTorch alone can make, against torch.cuda's statistics of the same call in a program of its own."""
    by_id = {variant["id"]: variant for variant in report.variants}
    paths = ("math", "flash", "efficient", "cudnn", "fused")
    runs = [run for run in report.message.get("reference_runs", []) if run["status"] == "ok" and run["path"] in paths]
    asked = [{"path": run["path"], "changes": run.get("changes", []), "backward": number(run, "backward_peak_bytes") > 0,
              "call": call_of(by_id[run["variants"][0]])} for run in runs]
    listed = job.work / f"{name}.json"
    listed.write_text(json.dumps(asked))
    there = json.loads(job.untraced("peaks.py", str(listed), CUDNN=cudnn).stdout.splitlines()[-1])
    wrong = [f"{run['path']} {run.get('changes', [])} {[t['sizes'] for t in by_id[run['variants'][0]]['tensors']]}: "
             f"{number(run, 'total_peak_bytes')}, by torch.cuda {peak}"
             for run, peak in zip(runs, there) if abs(number(run, "total_peak_bytes") - peak) > 0.02 * peak + SLACK]
    expect(runs and not wrong, "\n".join(wrong) or "no run")
    return len(runs)


def matrix(job, mode, cudnn):
    options = (f"--reference={mode}", "--reference-budget=0")
    _, report = job.traced("matrix.py", name=f"matrix-{mode}-cudnn{cudnn}", options=options, timeout=560, CUDNN=cudnn)
    report.check_laws()
    by_id = {variant["id"]: variant for variant in report.variants}
    runs = report.message.get("reference_runs", [])
    wrong, math = [], 0
    for finding in report.message.get("findings", []):
        first = by_id.get(finding["variants"][0]) if finding.get("variants") else None
        if finding["rule"] != "sdpa-math" or first is None or not stored(first):
            continue
        math += 1
        what = f"{[t['sizes'] for t in first['tensors']]} {first['tensors'][0]['dtype']}"
        if not 0 < number(finding, "fused_peak_bytes") < number(finding, "observed_peak_bytes"):
            wrong.append(f"no fused twin: {what}: {finding.get('reference_notes')}")
        if not any(advice.get("proof") == "proven" for advice in finding.get("advice", [])):
            wrong.append(f"no proven advice: {what}: {[advice['text'] for advice in finding.get('advice', [])]}")
        for note in finding.get("reference_notes", []):
            if "cuBLAS's workspace" not in note or "in the reference" in note:
                wrong.append(f"{what}: {note}")
    named = {by_id[variant]["path"] for run in runs for variant in run["variants"]}
    expect("fused" not in named, f"a fused call was run again: {named}")
    for run in runs:
        if run.get("checked") and not run.get("alters_result") and run.get("max_difference", 0) > 0.25:
            wrong.append(f"{run['path']} {run.get('changes')}: {run['max_difference']} from float64 math")
    expect(not wrong, "\n".join(wrong))
    expected = {0: 5, 1: 4}[cudnn]  # float64, GQA of D=512, stride, 3-D; without cuDNN also GQA with a mask
    expect(math >= expected, f"{math} calls ran math, at least {expected} expected")
    switches = cudnn if mode == "inline" else 1  # in the program its own switches hold; after it, PyTorch's defaults
    return f"{math} math calls with a fused twin and proven advice, {held_against_statistics(job, report, f'runs-{mode}-{cudnn}', switches)} runs within 2 % of torch.cuda"


def long(job):
    """S=4096: what the report's headline is made of, against torch.cuda and against what was measured before."""
    options = ("--reference=after", "--reference-budget=0")
    _, report = job.traced("long.py", name="long", options=options, timeout=560)
    runs = {run["path"]: run for run in report.message.get("reference_runs", []) if run["purpose"] == "observed" or not run.get("alters_result")}
    own = json.loads(job.untraced("long.py", "statistics").stdout.splitlines()[-1])
    wrong = []
    for path in ("math", "flex-dense", "flex-compiled"):
        run = runs.get(path, {})
        if run.get("status") != "ok" or abs(number(run, "total_peak_bytes") - own["again"][path]) > 0.02 * own["again"][path] + SLACK:
            wrong.append(f"{path}: {run.get('status')} {number(run, 'total_peak_bytes')}, by torch.cuda {own['again'][path]} {run.get('words')}")
    for path, mib in LONG.items():
        if abs(own["first"][path] / 2**20 - mib) > 0.02 * mib + 1:
            wrong.append(f"{path}: {own['first'][path] / 2**20:.0f} MiB in a first call, {mib} measured before")
    for path, mib in LONG_AT_MOST.items():
        if own["first"][path] / 2**20 > 1.02 * mib:
            wrong.append(f"{path}: {own['first'][path] / 2**20:.0f} MiB in a first call, at most {mib} measured before")
    for finding in report.message.get("findings", []):
        if finding["rule"] in ("sdpa-math", "flex-dense"):
            expect(number(finding, "fused_peak_bytes") * 20 < number(finding, "observed_peak_bytes"), f"{finding['rule']}: {finding}")
    equal("findings", {f["rule"] for f in report.message.get("findings", [])} & {"sdpa-math", "flex-dense"}, {"sdpa-math", "flex-dense"})
    expect(not wrong, "\n".join(wrong))
    return ", ".join(f"{path} {number(runs[path], 'total_peak_bytes') / 2**20:.1f} MiB" for path in ("math", "flex-dense", "flex-compiled"))


def untouched(job):
    """--reference=inline leaves the program's numbers as they are: losses, and the state of both generators, to the last bit."""
    plain = json.loads(job.untraced("inline.py").stdout.splitlines()[-1])
    result, report = job.traced("inline.py", options=("--reference=inline", "--reference-budget=0"))
    equal("losses and random states", json.loads(result.stdout.splitlines()[-1]), plain)
    report.check_laws()
    runs = [run for run in report.message.get("reference_runs", []) if run.get("in_program")]
    made = [run for run in runs if run["status"] == "ok"]
    expect(made, f"no run in the program: {[run.get('words') for run in runs]}")
    expect({run["device"] for run in made} == {"cuda:0"}, f"{made}")
    return f"{len(made)} runs in the program, {len(plain['losses'])} losses and both random states equal to the last bit"
