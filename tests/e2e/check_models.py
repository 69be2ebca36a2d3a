#!/usr/bin/env python3
"""Models of Transformers of every kind, with every attention implementation: the report says what hooks placed by hand see.

For each model and implementation: which module attended with which selection, in which layers, how often, and what ran, forward and
backward; and a finding for what was not fused, none for anything else. Further arguments: names of subjects/catalogue.py.
"""
import collections
import json
import sys

from harness import laws, script, trace, versions

# What a finding may be for, by what the hooks saw.
BLAMED = {"eager": "eager-attention", "math": "sdpa-math", "flex-dense": "flex-dense"}


class Seen:
    """Of one model with one implementation, in the report: as the observer's counts, plus the rules that name its variants."""

    def __init__(self):
        self.calls = {"forward": collections.Counter(), "backward": collections.Counter()}
        self.layers = collections.defaultdict(set)
        self.rules = collections.defaultdict(set)  # rule -> kinds of the variants it names


def functions(report):
    """Call path number -> the names of its functions."""
    return [{report["frames"][frame]["function"] for frame in path["frames"]} for path in report["call_paths"]]


def read(report, names):
    seen = collections.defaultdict(Seen)
    paths = functions(report)
    owner = {}
    for variant in report["variants"]:
        inside = names & paths[variant["call_path"] - 1] if variant["call_path"] else set()
        if not inside:
            continue
        (name,) = inside
        owner[variant["id"]] = (name, variant["backend"])
        module = variant.get("module") or {}
        selection = {"set": module.get("selection"), "unset": "unset"}.get(module.get("selection_state"), "-")
        key = (module.get("class_name", "?"), selection, variant["backend"])
        seen[name].calls[variant["phase"]][key] += int(variant["count"])
        if variant["phase"] == "forward":
            seen[name].layers[key] |= set(variant["layers"] or [-1])
    for finding in report["findings"]:
        for variant in finding["variants"]:
            name, backend = owner.get(variant, (None, None))
            if name:
                seen[name].rules[finding["rule"]].add(backend)
    return seen


def compare(name, truth, seen):
    """Every way in which the report and the hooks disagree."""
    wrong = []
    forward = {tuple(key): (count, set(layers)) for *key, count, layers in truth["forward"]}
    backward = {tuple(key): count for *key, count in truth["backward"]}
    for key in sorted(forward.keys() | seen.calls["forward"].keys()):
        hooks, report = forward.get(key, (0, set())), (seen.calls["forward"][key], seen.layers[key])
        if hooks != report:
            wrong.append(f"forward {'/'.join(key)}: hooks {hooks[0]} in layers {sorted(hooks[1])}, report {report[0]} in {sorted(report[1])}")
    for key in sorted(backward.keys() | seen.calls["backward"].keys()):
        if backward.get(key, 0) != seen.calls["backward"][key]:
            wrong.append(f"backward {'/'.join(key)}: hooks {backward.get(key, 0)}, report {seen.calls['backward'][key]}")
    kinds = {kind for _, _, kind in forward}
    allowed = {BLAMED[kind]: kind for kind in kinds if kind in BLAMED}
    if truth["masks"]:
        allowed["mask-dense"] = "flash"
    if len({selection for _, selection, _ in forward}) > 1:
        allowed["submodel-backend-differs"] = None
    for rule, backends in seen.rules.items():
        if rule not in allowed:
            wrong.append(f"finding {rule} for {sorted(backends)}")
    for rule, kind in allowed.items():
        if kind in BLAMED and kind not in seen.rules.get(rule, ()):
            wrong.append(f"no finding {rule}, though {kind} ran")
    return wrong


def main():
    check = script.Script(__doc__, "models")
    lacking = versions.unmet(["transformers==5.17"], check.python)
    if lacking:
        print(f"skipped: {lacking}")
        return 77
    result = trace.run(check.attntrace, [check.python, script.SUBJECTS / "models.py", *check.rest], check.work, timeout=1500)
    check.expect(result.returncode == 0, f"the models run{result.stderr[-3000:] if result.returncode else ''}")
    truths = json.loads(result.stdout)
    seen = read(result.report, set(truths))
    runs = refused = calls = 0
    for name, truth in truths.items():
        if "refused" in truth:
            refused += 1
            continue
        runs += 1
        calls += sum(entry[-2] for entry in truth["forward"])
        for wrong in compare(name, truth, seen[name]):
            check.expect(False, f"{name}: {wrong}")
    models = len({name.rpartition("__")[0] for name in truths})
    print(f"{models} models, {runs} runs, {refused} refused by their class, {calls} forward calls seen by hooks")
    check.expect(bool(check.rest) or models >= 40 and runs >= 2 * models, "there was something to compare")
    for error in laws.broken(result.report, result.summary):
        check.expect(False, f"law broken: {error}")
    return check.end()


if __name__ == "__main__":
    sys.exit(main())
