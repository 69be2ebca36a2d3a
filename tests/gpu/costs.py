"""What tracing costs on a GPU: benchmarks, said as they are. See checks.py."""

import json
import statistics


def step_time(job):
    seen = _turns(job, "llama.py", pairs=3, rounds=40)
    text = "; ".join(f"{what} {u / 1e6:.2f} ms untraced, {t / 1e6:.2f} ms traced, median of {len(ratios)} pairs of turns {statistics.median(ratios):.3f}x "
                     f"(by pair of processes {', '.join(f'{one:.3f}' for one in by_process)})"
                     for what, (u, t, ratios, by_process) in seen.items())
    return text + ("" if statistics.median(seen["step"][2]) <= 1.02 else "; the 1.02x of a step is NOT HELD")  # a benchmark, not a test


def launch_cost(job):
    """What a launch costs the thread that makes it: calls of attention first, so that the collector for kernels is there."""
    seen = _turns(job, "launches.py", pairs=3, rounds=20)
    return "; ".join(f"{what} {u:.0f} ns untraced, {t - u:+.0f} ns traced" for what, (u, t, _, _) in seen.items())


def _turns(job, program, pairs, rounds):
    """{what: (median untraced, median traced, ratios, median ratio of each pair of processes)} of two processes that take turns, so
    that whatever else the host does falls on both alike."""
    figures = {}
    for pair in range(pairs):
        both = [job.started(program, "turns", traced=traced) for traced in (False, True)]
        try:
            for process in both:
                if process.stdout.readline() != "ready\n":
                    raise RuntimeError(f"{program} did not begin: {process.stderr.read()[-2000:]}")
            for round in range(rounds):
                turn = [None, None]
                for traced in (False, True) if (round + pair) % 2 == 0 else (True, False):
                    both[traced].stdin.write("\n")
                    both[traced].stdin.flush()
                    turn[traced] = json.loads(both[traced].stdout.readline())
                for what in turn[0]:
                    figures.setdefault(what, [[] for _ in range(pairs)])[pair].append((turn[0][what], turn[1][what]))
        finally:
            for process in both:
                process.communicate()
    result = {}
    for what, by_process in figures.items():
        every = [one for turn in by_process for one in turn]
        result[what] = (statistics.median(u for u, _ in every), statistics.median(t for _, t in every), [t / u for u, t in every],
                        [statistics.median(t / u for u, t in turn) for turn in by_process])
    return result
