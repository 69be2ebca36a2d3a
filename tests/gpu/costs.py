"""What tracing costs on a GPU: benchmarks, said as they are. See checks.py."""

import json
import statistics


def traced_llama(job, name, options=(), **variables):
    result, report = job.traced("llama.py", name=name, options=options, **variables)
    return json.loads(result.stdout.splitlines()[-1]), report


def step_time(job):
    """Pairs of runs, untraced and traced, one after the other; the median of their ratios."""
    plain = lambda: json.loads(job.untraced("llama.py", STEPS=60).stdout.splitlines()[-1])
    pairs = _pairs(3, plain, lambda: traced_llama(job, "step", STEPS=60)[0])
    ratio = {key: statistics.median(t[key] / u[key] for u, t in pairs) for key in ("median_ms", "fastest_ms", "issued_ms")}
    middle = lambda key, side: statistics.median(pair[side][key] for pair in pairs)
    text = "; ".join(f"{what} {middle(key, 0):.2f} ms untraced, {middle(key, 1):.2f} ms traced, median of {len(pairs)} pairs {ratio[key]:.3f}x"
                     for what, key in (("median step", "median_ms"), ("fastest step", "fastest_ms"), ("its launches", "issued_ms")))
    return text + ("" if ratio["median_ms"] <= 1.02 else "; the 1.02x of a step is NOT HELD")  # a benchmark, not a test


def launch_cost(job):
    """What a launch costs the thread that makes it: a call of attention first, so that the collector for kernels is there."""
    run = lambda traced: json.loads((job.traced("launches.py")[0] if traced else job.untraced("launches.py")).stdout.splitlines()[-1])
    pairs = _pairs(4, lambda: run(False), lambda: run(True))
    return "; ".join(f"{what} {statistics.median(u[what] for u, _ in pairs):.0f} ns untraced, "
                     f"{statistics.median(t[what] - u[what] for u, t in pairs):+.0f} ns traced" for what in pairs[0][0])


def _pairs(count, plain, traced):
    """[(untraced, traced)], the order changing from pair to pair."""
    pairs = []
    for i in range(count):
        first, second = (plain, traced) if i % 2 == 0 else (traced, plain)
        one, two = first(), second()
        pairs.append((one, two) if i % 2 == 0 else (two, one))
    return pairs
