"""The GPU checks. Each takes a Job, raises Failed where something is not as it must be, and returns one line that says what was seen."""

import json

import costs
import neighbours
import reference
from harness import equal, expect, kinds, libraries, number

# Measured on an H200 with PyTorch 2.11.0 (cuDNN 9.19): forward's backend with cuDNN, and with cuDNN switched off.
MATRIX = {
    "plain": ("cudnn", "flash"), "causal": ("cudnn", "flash"), "bool mask": ("cudnn", "efficient"),
    "float mask": ("cudnn", "efficient"), "float32 mask": ("cudnn", None), "mask with gradient": ("efficient", "efficient"),
    "float32": ("efficient", "efficient"), "float64": ("math", "math"), "float16": ("cudnn", "flash"),
    "gqa causal": ("cudnn", "flash"), "gqa mask": ("cudnn", "math"), "gqa D=512": ("math", "math"), "D=256": ("cudnn", "flash"),
    "D=512": ("efficient", "efficient"), "D=7": ("flash", "flash"), "D=80": ("cudnn", "flash"), "Dv is not D": ("cudnn", "efficient"),
    "dropout": ("cudnn", "flash"), "causal, Sq is not Sk": ("cudnn", "efficient"), "stride": ("math", "math"), "3-D": ("math", "math"),
    "Sk=0": ("math", "math"), "Sq=1": ("cudnn", "flash"), "autocast": ("cudnn", "flash"),
}
LIBRARY = {"flash": "PyTorch flash", "efficient": "memory-efficient (cutlass)", "cudnn": "cuDNN"}


def matrix(job, cudnn):
    _, report = job.traced("matrix.py", name=f"matrix-cudnn{cudnn}", CUDNN=cudnn)
    report.check_laws()
    named, wrong, gates = report.named("matrix.py"), [], 0
    for name, expected in MATRIX.items():
        backend = expected[0 if cudnn else 1]
        phases = named[name]
        if backend is None:
            continue
        for phase in ("forward", "backward"):
            found = phases.get(phase, [])
            if name == "Sk=0" and phase == "backward" and not found:
                continue
            got = sorted({v["backend"] for v in found})
            if got != [backend]:
                wrong.append(f"{name} {phase}: {got or 'not seen'}, expected {backend}")
                continue
            if backend in LIBRARY and any(LIBRARY[backend] not in libraries(v) for v in found):
                wrong.append(f"{name} {phase}: kernels {[k['name'][:60] for v in found for k in v.get('kernels', [])]}")
        for v in phases.get("forward", []):
            refused = {g["backend"] for g in v.get("gates", [])}
            gates += len(v.get("gates", []))
            must = {"math": {"flash", "efficient", "cudnn"}, "efficient": {"flash"}}.get(backend, set())
            if not must <= refused:
                wrong.append(f"{name}: no gate for {sorted(must - refused)}")
    expect(not wrong, "\n".join(wrong))
    masks = {v["mask_content"] for v in named["bool mask"].get("forward", [])}
    equal("content of the causal bool mask", masks, {"plain-causal"})
    return f"{len(MATRIX)} cases, {gates} gates"


def kernels(job):
    _, report = job.traced("kernel_names.py")
    report.check_laws()
    named, wrong = report.named("kernel_names.py"), []
    for name in ("flash", "efficient", "cudnn", "math", "eager", "flex-dense", "flex-triton"):
        for phase in ("forward", "backward"):
            found = [v for v in named[name].get(phase, [])]
            count = sum(number(v, "count") for v in found)
            if {v["backend"] for v in found} != {name}:
                wrong.append(f"{name} {phase}: backend {sorted({v['backend'] for v in found})}")
            if count != 10:
                wrong.append(f"{name} {phase}: {count} calls, expected 10")
            fused = name not in ("math", "eager", "flex-dense")
            if not any(v.get("kernels") for v in found):
                wrong.append(f"{name} {phase}: no kernels")
            elif fused != any("fused" in kinds(v) for v in found):
                wrong.append(f"{name} {phase}: kinds {[sorted(kinds(v)) for v in found]}")
    expect(not wrong, "\n".join(wrong))
    expect(report.message["environment"].get("devices"), "no device name")
    return f"14 kinds of call named; {report.counter('kernel_launches_seen')} launches seen, {report.counter('kernel_launches_attributed')} attributed"


def memory(job, setting):
    name = {"": "default", "expandable_segments:True": "expandable", "backend:cudaMallocAsync": "async"}[setting]
    result, report = job.traced("memory.py", name=f"memory-{name}", PYTORCH_CUDA_ALLOC_CONF=setting)
    own = json.loads(result.stdout.splitlines()[-1])
    report.check_laws()
    expect(not report.blind(), f"blind spots {report.blind()}, allocator counts in steps {own['steps']}")
    device = report.device("cuda:0")
    equal("process peak", number(device, "peak_bytes"), own["peak"])
    named = report.named("memory.py")
    for call, peak in own["calls"].items():
        equal(f"peak of {call}", {number(v, "peak_bytes") for v in named[call]["forward"]}, {peak})
    expect(number(device, "device_bytes") > 0 and number(device, "reserved_bytes") >= own["peak"], f"no reading of the device: {device}")
    return (f"peak {own['peak']} bytes, {len(own['calls'])} calls equal to the byte; counted in steps {own['steps']}; "
            f"{number(device, 'other_bytes') >> 20} MiB not PyTorch's, CUPTI's {number(device, 'cupti_bytes') >> 10} KiB")


def profiler(job, order, **variables):
    untraced = json.loads(job.untraced("profiled.py", order, **variables).stdout.splitlines()[-1])
    result, report = job.traced("profiled.py", order, name="-".join(["profiled", order, *variables]), **variables)
    traced = json.loads(result.stdout.splitlines()[-1])
    equal("device events", [s["device"] for s in traced], [s["device"] for s in untraced])
    equal("names of device events", [s["names"] for s in traced], [s["names"] for s in untraced])
    report.check_laws()
    last = report.named("profiled.py")["a kind that is new after all of them"].get("forward", [])
    expect(last and all(v.get("kernels") for v in last), "no kernels of the call after the sessions")
    return f"{len(traced)} sessions with {[s['device'] for s in traced]} device events, all {[s['all'] for s in traced]} / untraced {[s['all'] for s in untraced]}"


def profiler_daemon(job):
    return profiler(job, "late", KINETO_USE_DAEMON=1)


def gpu_time(job):
    profiled = json.loads(job.untraced("gpu_time.py", PROFILE=1).stdout.splitlines()[-1])
    _, report = job.traced("gpu_time.py", options=("--gpu-time",))
    report.check_laws()
    expect(not report.blind(), f"blind spots {report.blind()}")
    equal("device time of all variants", sum(number(v, "device_ns") for v in report.variants), report.counter("gpu_ns_attributed"))
    named, wrong, seen = report.named("gpu_time.py"), [], []
    for name, phases in profiled.items():
        for phase, (kernels, ns) in phases.items():
            found = named[name].get(phase, [])
            launches, ours = (sum(number(v, key) for v in found) for key in ("timed_launches", "device_ns"))
            calls = 30 if name == "graph" else sum(number(v, "count") for v in found)
            if launches == 0:
                wrong.append(f"{name} {phase}: nothing was timed")
                continue
            ratio = ours / calls / (ns / 30)
            text = f"{name} {phase} {ours / calls / 1000:.1f} us a call, {launches / calls:.1f} kernels (profiler {ns / 30000:.1f}, {kernels / 30:.1f})"
            seen.append(text)
            # Of a compiled region only the template is the call's; a backward by hand has steps that belong to nobody.
            low, high = (0.5, 1.05) if name == "flex-triton" else (0.9, 1.1) if name == "math" else (0.95, 1.05)
            if not low <= ratio <= high:
                wrong.append(f"{text}: {ratio:.3f}x")
    expect(not wrong, "\n".join(wrong))
    return "; ".join(seen)


def gpu_time_beside_profiler(job):
    """A profiler comes while device times are taken: it gets what it gets untraced, and the report says where times end."""
    untraced = json.loads(job.untraced("profiled.py", "late").stdout.splitlines()[-1])
    result, report = job.traced("profiled.py", "late", name="profiled-gpu-time", options=("--gpu-time",))
    traced = json.loads(result.stdout.splitlines()[-1])
    equal("device events", [s["device"] for s in traced], [s["device"] for s in untraced])
    equal("names of device events", [s["names"] for s in traced], [s["names"] for s in untraced])
    report.check_laws()
    expect("gpu-time" in dict(report.blind()), f"blind spots {report.blind()}")
    timed = report.counter("gpu_kernels_timed")
    expect(timed > 0, "nothing was timed before it came")
    return f"{timed} kernels timed, then: {dict(report.blind())['gpu-time']}"


def forked(job, *options):
    _, report = job.traced("forked.py", name="forked" + "".join(options), options=options, timeout=120)
    named = report.named("forked.py")
    equal("calls in workers", sum(number(v, "count") for v in named["in a worker"].get("forward", [])), 32)
    for phase in ("forward", "backward"):
        equal(f"{phase} calls in the parent", sum(number(v, "count") for v in named["in the parent"].get(phase, [])), 8)
    report.check_laws()
    return f"{len(report.message['processes'])} processes, faults 0"


def exits(job, *options):
    seen = []
    for way in ("end", "exit", "os._exit", "raise", "thread", "sigterm", "fault"):
        plain = job.untraced("exits.py", way, code=None, timeout=120)
        traced, _ = job.traced("exits.py", way, name="exits-" + way + "".join(options), code=None, options=options, timeout=120)
        if way == "thread":  # what a thread meets while the interpreter ends is not the same twice
            expect(traced.seconds < plain.seconds + 30, f"{way}: {traced.seconds:.1f} s, untraced {plain.seconds:.1f} s")
            continue
        equal(f"{way}: exit", traced.returncode, plain.returncode)
        expect(traced.seconds < plain.seconds + 15, f"{way}: {traced.seconds:.1f} s, untraced {plain.seconds:.1f} s")
        seen.append(f"{way} {traced.returncode} +{traced.seconds - plain.seconds:.1f} s")
    return ", ".join(seen)


def _findings(report):
    return {f["rule"]: f for f in report.message.get("findings", [])}


def wide_heads(job):
    """B14: grouped heads of 512 run math, repeated ones do not."""
    _, report = job.traced("wide_heads.py", options=("--reference=off",))
    named = report.named("wide_heads.py")
    equal("grouped", {v["backend"] for v in named["grouped"]["forward"]}, {"math"})
    equal("repeated", {v["backend"] for v in named["repeated"]["forward"]}, {"efficient"})
    finding = _findings(report).get("sdpa-math")
    expect(finding is not None, f"findings {sorted(_findings(report))}")
    gates = {g["backend"] for g in finding.get("gates", [])}
    expect({"flash", "efficient", "cudnn"} <= gates, f"gates of {sorted(gates)}")
    equal("other findings", sorted(_findings(report)), ["sdpa-math"])
    return "; ".join(sorted(g["backend"] + ": " + g["text"].strip() for g in finding["gates"]))


def large_batch(job):
    """B21: a batch that is one too large for a grid."""
    seen = []
    for backend in ("EFFICIENT_ATTENTION", "FLASH_ATTENTION", "CUDNN_ATTENTION", "MATH"):
        _, control = job.traced("large_batch.py", backend, "32768")  # as the advice splits it
        equal(f"findings of {backend} with a batch of 32768", sorted(set(_findings(control)) - {"sdpa-math"}), [])
        plain = job.untraced("large_batch.py", backend, "65536", code=None)
        traced, report = job.traced("large_batch.py", backend, "65536", code=plain.returncode)
        rules = sorted(_findings(report))
        error = "" if plain.returncode == 0 else plain.stderr.strip().splitlines()[-1][:120]
        seen.append(f"{backend}: exit {plain.returncode} {error}, findings {rules}")
        expect((plain.returncode == 0) == ("backend-error" not in rules), "; ".join(seen))
    return "; ".join(seen)


def aot_eager(job):
    """B05: compiled, but with a backend that lowers nothing."""
    _, report = job.traced("flex_reasons.py", "aot_eager", options=("--reference=off",))
    finding = _findings(report).get("flex-dense")
    expect(finding is not None and finding["phase"] == "forward,backward", f"findings {sorted(_findings(report))}")
    expect("aot_eager" in finding.get("why", ""), finding.get("why", ""))
    return finding["why"]


def mask_density(job):
    """B01: how many of its blocks a mask on the device keeps, as PyTorch says it; the program's own results are those of an untraced run."""
    said = job.untraced("mask_density.py").stdout.split()
    result, report = job.traced("mask_density.py", options=("--reference=off",))
    equal("what the program printed", result.stdout.split(), said)
    named = report.named("mask_density.py")
    got = [named[name]["forward"][0].get("facts", {}).get("flex.mask_density") for name in ("window", "causal")]
    equal("percent of the blocks", got, said[:2])
    whys = " ".join(f["why"] for f in report.message.get("findings", []) if f["rule"] == "flex-dense")
    expect(all(f"keeps {percent} % of the blocks" in whys for percent in got), whys)
    return f"window {got[0]} %, causal {got[1]} %"


def dropout(job):
    """B28: dropout keeps no kernel of CUDA's from being fused, and is no finding."""
    seen = []
    for cudnn in (1, 0):
        _, report = job.traced("dropout.py", name=f"dropout-cudnn{cudnn}", CUDNN=cudnn, options=("--reference=off",))
        named = report.named("dropout.py")
        got = {name: sorted({v["backend"] for phase in named[name].values() for v in phase}) for name in ("without", "with")}
        equal(f"cuDNN {cudnn}", got, {"without": ["cudnn" if cudnn else "flash"], "with": ["cudnn" if cudnn else "flash"]})
        equal("findings", sorted(_findings(report)), [])
        peaks = {name: max(number(v, "peak_bytes") for v in named[name]["backward"]) for name in ("without", "with")}
        seen.append(f"cuDNN {cudnn}: {got['with'][0]}, backward peak {peaks['without']} without, {peaks['with']} with")
    return "; ".join(seen)


def pairs(job):
    _, report = job.traced("pairs.py", options=("--reference=off",))
    report.check_laws()
    named, wrong = report.named("pairs.py"), []
    for name, backends, layers in (("target", {"cudnn", "flash", "efficient"}, 4), ("draft", {"eager"}, 2)):
        for phase in ("forward", "backward"):
            for rank in (0, 1):
                mine = [v for v in named[name].get(phase, []) if f"cuda:{rank}" in {t["device"] for t in v.get("tensors", [])}]
                count, ran = sum(number(v, "count") for v in mine), {v["backend"] for v in mine}
                if count != 6 * layers or not ran or not ran <= backends:
                    wrong.append(f"{name} {phase} on cuda:{rank}: {count} calls by {sorted(ran)}, expected {6 * layers}")
                if phase == "forward" and any(f"pair-{rank}" not in v.get("thread", "") for v in mine):
                    wrong.append(f"{name} on cuda:{rank}: threads {sorted({v.get('thread', '') for v in mine})}")
                if any(not v.get("kernels") for v in mine):
                    wrong.append(f"{name} {phase} on cuda:{rank}: no kernels")
    expect(not wrong, "\n".join(wrong))
    return "a target and a draft on each of two devices, each by its thread"


def graphs(job):
    _, report = job.traced("graphs.py")
    report.check_laws()
    named, wrong, kernels_seen = report.named("graphs.py"), [], 0
    for name in ("sdpa", "causal", "eager"):
        for phase in ("forward", "backward"):
            found = named[name].get(phase, [])
            replayed = sum(number(v, "replayed_calls") for v in found)
            kernels_seen += sum(number(v, "replayed_kernels") for v in found)
            if replayed != 7:
                wrong.append(f"{name} {phase}: {replayed} calls replayed, expected 7 (count {sum(number(v, 'count') for v in found)})")
    expect(not wrong, "\n".join(wrong))
    return f"7 replays of 6 calls, {kernels_seen} kernels"


def threads(job):
    _, report = job.traced("threads.py")
    report.check_laws()
    named = report.named("threads.py")
    for name in ("target", "draft"):
        for phase in ("forward", "backward"):
            equal(f"{name} {phase}", sum(number(v, "count") for v in named[name].get(phase, [])), 100)
    devices = {t["device"] for v in report.variants for t in v.get("tensors", [])}
    return f"2 threads on {sorted(devices)}"


def oom(job):
    code = job.untraced("oom.py", code=None).returncode
    expect(code != 0, "the program did not fail")
    result, _ = job.traced("oom.py", code=code)
    expect("OutOfMemoryError" in result.stderr, "no OutOfMemoryError on stderr")
    return f"exit {code} both ways"


def llama(job):
    plain = lambda **v: json.loads(job.untraced("llama.py", **v).stdout.splitlines()[-1])
    own, report = _traced_llama(job, "llama-0")
    # Bits can only be compared where the program itself repeats: with PyTorch's deterministic algorithms.
    exact = dict(STEPS=3, DETERMINISTIC=1, CUBLAS_WORKSPACE_CONFIG=":4096:8")
    equal("losses", _traced_llama(job, "llama-exact", **exact)[0]["losses"], plain(**exact)["losses"])
    report.check_laws()
    equal("process peak", number(report.device("cuda:0"), "peak_bytes"), own["peak"])
    for phase in ("forward", "backward"):
        mine = [v for v in report.variants if v["phase"] == phase]
        equal(f"{phase} calls", sum(number(v, "count") for v in mine), 16 * 24)
        equal(f"{phase} layers", sorted({n for v in mine for n in v.get("layers", [])} | ({0} if mine else set())), list(range(16)))
        expect(all(v.get("kernels") for v in mine), f"{phase}: no kernels")
    # Launches: two steps more, watched from end to end, against what the profiler of an untraced run counts in two steps.
    seen = [_traced_llama(job, f"llama-watch{n}", ("--watch-launches",), STEPS=n)[1].counter("kernel_launches_seen") for n in (4, 6)]
    oracle = plain(STEPS=6, PROFILE=1)["kernels_of_two_steps"]
    equal("launches of two steps", seen[1] - seen[0], oracle)
    return (f"losses equal to the last bit, {own['parameters'] / 1e9:.2f} B parameters, 16 layers forward and backward, "
            f"launches of two steps {oracle}, as the profiler counts")


def _traced_llama(job, name, options=(), **variables):
    result, report = job.traced("llama.py", name=name, options=options, **variables)
    return json.loads(result.stdout.splitlines()[-1]), report


def by_hand(job):
    """backward-dense: a fused forward whose backward stores its scores, with its kernels, beside one that is fused both ways."""
    _, report = job.traced("by_hand.py")
    report.check_laws()
    named = report.named("by_hand.py")
    for name, backward in (("by hand", "dense"), ("by autograd", "fused")):
        for phase, path in (("forward", "fused"), ("backward", backward)):
            mine = named[name].get(phase, [])
            equal(f"{name}, {phase}", ({v["path"] for v in mine}, sum(number(v, "count") for v in mine)), ({path}, 3))
            expect(all(v.get("kernels") for v in mine), f"{name}, {phase}: no kernels")
    found = [(f["rule"], set(f["variants"])) for f in report.message.get("findings", [])]
    equal("findings", found, [("backward-dense", {v["id"] for v in named["by hand"]["backward"]})])
    peak = max(number(v, "peak_bytes") for v in named["by hand"]["backward"])
    return f"backward by hand: {peak / 2**20:.0f} MiB, {sorted({k['name'][:40] for v in named['by hand']['backward'] for k in v['kernels']})[:3]}"


def native_mha(job):
    """The inference fast path of nn.TransformerEncoder: what it ran, by its kernels, is what the report says."""
    _, report = job.traced("native_mha.py")
    report.check_laws()
    seen, wrong = [], []
    for name, phases in report.named("native_mha.py").items():
        found = phases.get("forward", [])
        equal(f"calls of {name}", sum(number(v, "count") for v in found), 4)
        for v in found:
            seen.append(f"{name}: {v['backend']} ({v['path']})")
            fused = any("fused" in kinds(w) for w in found)
            stored = number(v, "score_bytes") > 0
            if v["path"] != ("fused" if fused else "dense") or stored == fused:
                wrong.append(f"{seen[-1]}, scores {number(v, 'score_bytes')}, kernels {sorted(kinds(v))}")
    expect(not wrong, "\n".join(wrong))
    return "; ".join(sorted(set(seen)))


def ddp(job):
    import sys

    _, report = job.traced("ddp.py", launcher=[sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"])
    report.check_laws()
    ranks = {}
    for v in report.variants:
        rank = report.message["processes"][v.get("process", 0)].get("rank", 0)
        ranks.setdefault((rank, v["phase"]), []).append(v)
    for rank in (0, 1):
        for phase in ("forward", "backward"):
            found = ranks.get((rank, phase), [])
            equal(f"rank {rank} {phase}", sum(number(v, "count") for v in found), 10)
            equal(f"rank {rank} device", {t["device"] for v in found for t in v.get("tensors", [])}, {f"cuda:{rank}"})
    return "2 ranks, each on its device"


# name: (check, arguments, devices it needs). "together" run side by side; "alone" are timed.
TOGETHER = {
    "matrix, cuDNN": (matrix, (1,), 1), "matrix, no cuDNN": (matrix, (0,), 1), "kernels": (kernels, (), 1),
    "memory": (memory, ("",), 1), "memory, expandable segments": (memory, ("expandable_segments:True",), 1),
    "memory, cudaMallocAsync": (memory, ("backend:cudaMallocAsync",), 1), "profiler first": (profiler, ("first",), 1),
    "profiler late": (profiler, ("late",), 1), "profiler daemon": (profiler_daemon, (), 1),
    "profiler beside gpu-time": (gpu_time_beside_profiler, (), 1), "graphs": (graphs, (), 1), "threads": (threads, (), 1),
    "oom": (oom, (), 1), "native mha": (native_mha, (), 1), "backward by hand": (by_hand, (), 1), "ddp": (ddp, (), 2), "pairs": (pairs, (), 2),
    "forked": (forked, (), 1), "forked, gpu-time": (forked, ("--gpu-time",), 1),
    "B14 wide heads": (wide_heads, (), 1), "B21 large batch": (large_batch, (), 1), "B05 aot_eager": (aot_eager, (), 1),
    "B01 mask density": (mask_density, (), 1),
    "B28 dropout": (dropout, (), 1), "beside compute-sanitizer": (neighbours.beside_tool, ("compute-sanitizer", "--tool", "memcheck"), 1),
    "beside ncu": (neighbours.beside_tool, ("ncu", "--kernel-name", "no_such_kernel", "--target-processes", "all"), 1),
    "beside an injected tool": (neighbours.injected, (), 1),
    "beside nsys": (neighbours.beside_tool, ("nsys", "profile", "--trace=cuda", "--force-overwrite=true", "--output=attntrace-nsys"), 1),
}
ALONE = {
    "gpu-time": (gpu_time, (), 1), "exits": (exits, (), 1), "exits, gpu-time": (exits, ("--gpu-time",), 1),
    "launch cost": (costs.launch_cost, (), 1), "step time": (costs.step_time, (), 1),
    "reference, matrix, cuDNN": (reference.matrix, ("after", 1), 1), "reference, matrix, no cuDNN": (reference.matrix, ("after", 0), 1),
    "reference, in the program": (reference.matrix, ("inline", 0), 1), "reference, S=4096": (reference.long, (), 1),
    "reference, untouched": (reference.untouched, (), 1), "llama 1B": (llama, (), 1),
}
