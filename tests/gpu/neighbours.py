"""Checks of attntrace beside other tools that want CUPTI. See checks.py."""

import os
import shutil
import subprocess
import sys
import sysconfig

from harness import PROGRAMS, equal, expect, number


def beside_tool(job, tool, *arguments):
    """Another tool that wants CUPTI: what it leaves to us is reported, what it does not is said."""
    path = shutil.which(tool) or f"/usr/local/cuda/bin/{tool}"
    if not os.path.exists(path):
        return f"skipped: {tool} is not here"
    _, report = job.traced("memory.py", name=tool, launcher=[path, *arguments, sys.executable], timeout=280)
    # A tool may start the program through processes of its own; the program's is the one with variants.
    calls = sum(number(v, "count") for v in report.variants if v["phase"] == "forward")
    equal("forward calls", calls, 5)
    launches = sum(number(v, "kernel_launches") for v in report.variants)
    said = dict(report.blind()).get("cupti", "")
    expect(launches > 0 or said, "no kernels, and nothing is said")
    return f"{launches} launches attributed; {said or 'nothing held CUPTI'}"


def injected(job):
    """A tool that CUDA itself injects has CUPTI's subscription before we ask for it: it sees what it sees untraced, and so do we."""
    library, count = job.work / "injected_tool.so", job.work / "injected.txt"
    cupti = f"{sysconfig.get_path('purelib')}/nvidia/cu13/lib"
    subprocess.run(["g++", "-std=c++20", "-shared", "-fPIC", "-I/usr/local/cuda/include", f"-L{cupti}", f"-Wl,-rpath,{cupti}", "-o", str(library),
                    str(PROGRAMS / "injected_tool.cc"), "-l:libcupti.so.13"], check=True)
    variables = {"CUDA_INJECTION64_PATH": str(library), "INJECTED_COUNT": str(count)}
    job.untraced("memory.py", **variables)
    alone = int(count.read_text())
    count.unlink()
    result, report = job.traced("memory.py", name="injected", **variables)
    equal("launches that the tool counts", int(count.read_text()), alone)
    equal("forward calls", sum(number(v, "count") for v in report.variants if v["phase"] == "forward"), 5)
    launches, said = sum(number(v, "kernel_launches") for v in report.variants), dict(report.blind()).get("cupti", "")
    expect(launches > 0 or "CUDA_INJECTION64_PATH" in said or "injected" in said, f"no kernels, and what is said is: {said!r}")
    return f"the tool counts {alone} launches traced and untraced; {launches} attributed; {said or 'nothing in the way'}"
