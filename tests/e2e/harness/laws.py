"""The laws of conservation (docs/architecture.md), for any report. Protobuf's JSON writes 64-bit numbers as strings."""


def _sum(items, key):
    return sum(int(item[key]) for item in items)


def _counts(process):
    return {counter["name"]: int(counter["value"]) for counter in process["counters"]}


def broken(report, summary):
    """Every law that does not hold, as text."""
    errors = []

    def law(holds, text):
        if not holds:
            errors.append(text)

    variants = report["variants"]
    by_id = {variant["id"]: variant for variant in variants}
    law(len(by_id) == len(variants), "two variants have one id")
    for variant in variants:
        who = f"variant {variant['id']} ({variant['operator']}, {variant['phase']})"
        law(variant["call_path"] or variant["no_call_path"], f"{who} has neither a call path nor a reason")
        law(variant["call_path"] <= len(report["call_paths"]), f"{who}: no such call path")
        law(int(variant["count"]) > 0, f"{who} was never called")
        law(variant["process"] < len(report["processes"]), f"{who}: no such process")
        law(not variant["forward"] or variant["forward"] in by_id, f"{who}: no such forward")
        law(variant["layers"] == sorted(set(variant["layers"])), f"{who}: layers are not ascending")
    for finding in report["findings"]:
        law(finding["variants"] or finding["incidents"] or finding["rule"] == "blind-spot",
            f"finding {finding['rule']} names no variant and no incident")
        law(all(0 < incident <= len(report["incidents"]) for incident in finding["incidents"]),
            f"finding {finding['rule']} names an incident that is not there")
        for variant in finding["variants"]:
            law(variant in by_id, f"finding {finding['rule']} names variant {variant}, which is not there")

    for index, process in enumerate(report["processes"]):
        own = [variant for variant in variants if variant["process"] == index]
        who = f"process {index}"
        counts = _counts(process)
        for device in process["devices"]:
            allocated, attributed = int(device["allocated_bytes"]), int(device["attributed_bytes"])
            law(allocated == attributed + int(device["unattributed_bytes"]), f"{who} {device['device']}: bytes do not add up")
            law(int(device["peak_bytes"]) >= int(device["live_bytes"]), f"{who} {device['device']}: live is over peak")
            if device["device"] == "cpu" and not counts.get("variants_dropped"):
                law(_sum(own, "allocated_bytes") == attributed,
                    f"{who}: variants allocated {_sum(own, 'allocated_bytes')}, attributed are {attributed}")
        if not counts.get("variants_dropped"):
            for phase in ("forward", "backward", "recompute"):
                calls = sum(int(variant["count"]) for variant in own if variant["phase"] == phase)
                law(counts.get(f"calls_{phase}", 0) == calls, f"{who}: {phase} calls {counts.get(f'calls_{phase}', 0)}, variants have {calls}")
        law(counts.get("faults", 0) == 0, f"{who}: {counts.get('faults')} faults were caught in the agent")

    totals = report["totals"]
    for kind in ("fused", "dense", "quadratic"):
        calls = sum(int(variant["count"]) for variant in variants if variant["path"] == kind)
        law(int(totals[kind]) == calls, f"totals.{kind} is {totals[kind]}, variants have {calls}")
    errors += _summary_disagrees(report, summary)
    return errors


def _summary_disagrees(report, summary):
    if not summary:
        return ["the last line on standard error is no SUMMARY line"]
    fields = dict(field.split("=", 1) for field in summary.split()[1:])
    rules = [finding["rule"] for finding in report["findings"]]
    totals = report["totals"]
    said = {} if fields["findings"] == "-" else dict(rule.split(":") for rule in fields["findings"].split(","))
    wanted = {
        "status": "untraced" if all(p["tracing"] != "traced" for p in report["processes"]) else "findings" if rules else "clean",
        "calls": f"{totals['forward_calls']}/{totals['backward_calls']}/{totals['recompute_calls']}",
        "fused": totals["fused"], "dense": totals["dense"], "quadratic": totals["quadratic"],
        "blind": str(len(report["blind_spots"])), "peak_cpu": totals["peak_cpu_bytes"], "peak_cuda": totals["peak_cuda_bytes"],
    }
    errors = [f"SUMMARY {key}={fields.get(key)}, the report says {value}" for key, value in wanted.items() if fields.get(key) != value]
    if {rule: str(rules.count(rule)) for rule in rules} != said:
        errors.append(f"SUMMARY findings={fields['findings']}, the report has {rules}")
    return errors
