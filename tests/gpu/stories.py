"""The two stories of docs/examples on a GPU, and flex_attention's reasons for being dense. Checks as in checks.py."""

import pathlib

from harness import equal, expect, number

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "examples"
OFF = ("--reference=off",)


def findings(report):
    found = {}
    for finding in report.message.get("findings", []):
        found.setdefault(finding["rule"], []).append(finding)
    return found


def files_of(report, variant):
    if not variant.get("call_path"):
        return set()
    path = report.message["call_paths"][variant["call_path"] - 1]
    return {pathlib.Path(report.message["frames"][f].get("file", "")).name for f in path["frames"]}


def within(what, got, wanted, share=0.02):
    expect(abs(got - wanted) <= share * wanted, f"{what}: {got}, torch.cuda says {wanted}")


def peaks_of(result):
    return [int(figure) for figure in result.stdout.splitlines()[-1].split()[1:]]


def unreached(job):
    """Two paths: the project's own is fused, the vendor's dense, in both phases; the printed advice removes the finding."""
    _, report = job.traced(EXAMPLES / "draft_trainer.py", options=OFF)
    report.check_laws()
    vendor = [v for v in report.variants if "vendor_attention.py" in files_of(report, v)]
    own = [v for v in report.variants if v not in vendor]
    for phase, calls in (("forward", 6), ("backward", 6)):
        equal(f"vendor {phase}", {v["backend"] for v in vendor if v["phase"] == phase}, {"flex-dense"})
        equal(f"vendor {phase} calls", sum(number(v, "count") for v in vendor if v["phase"] == phase), calls)
        equal(f"own {phase}", {v["backend"] for v in own if v["phase"] == phase}, {"flex-triton"})
        equal(f"own {phase} calls", sum(number(v, "count") for v in own if v["phase"] == phase), 3)
    found = findings(report)
    equal("findings", set(found), {"flex-dense"})
    named = {v for f in found["flex-dense"] for v in f["variants"]}
    equal("the finding names", named, {v["id"] for v in vendor})
    forward, backward = (max(number(v, "peak_bytes") for v in vendor if v["phase"] == phase) for phase in ("forward", "backward"))
    own_forward, own_backward = peaks_of(job.untraced("flex_peaks.py"))
    within("peak of a dense forward", forward, own_forward)
    within("peak of a dense backward", backward, own_backward)
    _, fixed = job.traced(EXAMPLES / "draft_trainer.py", "--fixed", options=OFF)
    fixed.check_laws()
    equal("findings after the advice", set(findings(fixed)), set())
    equal("backends after the advice", {v["backend"] for v in fixed.variants}, {"flex-triton"})
    return (f"vendor dense: forward {forward / 2**30:.2f} GiB, backward {backward / 2**30:.2f} GiB (torch.cuda {own_forward / 2**30:.2f}, "
            f"{own_backward / 2**30:.2f}); own path fused; --fixed: no finding")


def unselected(job, transformers=None):
    """A bare LlamaConfig and a BlockMask: each selection comes out as what it is. `transformers`: a folder with one before 5, where
    nothing selected is a KeyError, mask or not."""
    seen = []
    variables = {"PYTHONPATH": transformers} if transformers else {}
    for name, arguments, wanted in (("nothing, BlockMask", (), {"backend-unset"}), ("sdpa, BlockMask", ("--select", "sdpa"), {"mask-backend-mismatch"}),
                                    ("flex_attention, BlockMask", ("--select", "flex_attention"), set()),
                                    ("nothing, no mask", ("--mask", "none"), {"backend-unset"} | (set() if transformers else {"causal-mask-lost"}))):
        _, report = job.traced(EXAMPLES / "draft_layers.py", *arguments, options=OFF, code=None, name=f"draft_layers{len(seen)}-{bool(transformers)}",
                               **variables)
        got = set(findings(report))
        equal(f"{name}: findings", got, wanted)
        seen.append(f"{name}: {', '.join(sorted(got)) or 'nothing'}")
    version = report.message["environment"]["transformers"]
    expect(not transformers or version.startswith("4."), f"Transformers {version} was imported")
    return f"Transformers {version}: " + "; ".join(seen)


def reasons(job):
    seen = []
    for case, rules in (("plain", {"flex-dense"}), ("aot_eager", {"flex-dense"}), ("recompiled", {"flex-fell-back"}),
                        ("small_heads", {"flex-dense"}), ("fused", set())):
        result, report = job.traced("flex_reasons.py", case, options=OFF)
        report.check_laws()
        got = set(findings(report))
        equal(f"{case}: findings", got, rules)
        for phase in ("forward", "backward"):
            expect(any(v["phase"] == phase for v in report.variants), f"{case}: no {phase}")
        whole = max(peaks_of(result))
        largest = max((number(v, "peak_bytes") for v in report.variants if v["backend"] == "flex-dense"), default=0)
        expect(largest <= whole * 1.02, f"{case}: a call's peak of {largest} is over the program's {whole}")
        if case == "small_heads":
            why = report.message["findings"][0]["why"]
            expect("takes no heads below 16" in why, f"small_heads: {why}")
        seen.append(f"{case}: {', '.join(sorted(got)) or 'nothing'}")
    _, report = job.traced("flex_reasons.py", "refused", options=OFF, code=1)
    refused = findings(report)
    equal("refused: findings", set(refused), {"backend-error"})
    advice = str(refused["backend-error"][0]["advice"])
    expect("pad the heads to 16" in advice, f"refused: {advice}")
    return "; ".join(seen) + "; refused: backend-error"


def block_mask(job):
    _, report = job.traced("block_mask.py", "plain", options=OFF)
    found = findings(report)
    equal("findings", set(found), {"block-mask-dense"})
    grid = max(number(i, "bytes") for i in report.message["incidents"])
    equal("full grid", grid, 32768 * 32768)
    _, compiled = job.traced("block_mask.py", "compiled", options=OFF)
    equal("findings when compiled", set(findings(compiled)), set())
    return "full grid of 1 GiB named; compiled: nothing"


TOGETHER = {"story: the fix that is not reached": (unreached, (), 1), "story: the selection that is missing": (unselected, (), 1),
            "flex reasons": (reasons, (), 1), "block mask": (block_mask, (), 1)}
