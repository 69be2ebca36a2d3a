#!/usr/bin/env python3
"""What cmake --install puts under a prefix works there, from end to end, with nothing of the build folder in it."""
import pathlib
import shutil
import subprocess
import sys

from harness import trace
from harness.program import PROGRAMS
from harness.script import Script

# Runs attention, then prints what of attntrace is mapped into it and into its launcher.
SUBJECT = """
import os, torch
q = torch.randn(1, 2, 8, 16, dtype=torch.float64, requires_grad=True)
torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5).sum().backward()
paths = [os.environ["LD_PRELOAD"]]
for process in (os.getpid(), os.getppid()):
    paths += [line.split(maxsplit=5)[-1].strip() for line in open(f"/proc/{process}/maps")]
print(*sorted({path for path in paths if "attntrace" in os.path.basename(path)}), sep="\\n")
"""

PROJECT = "cmake_minimum_required(VERSION 3.22)\nproject(piece NONE)\ninstall(FILES {file} DESTINATION share)\n"


def run(*command, options="", **more):
    return subprocess.run([str(part) for part in command], env=trace.environment({"ATTNTRACE_OPTIONS": options}), text=True,
                          capture_output=True, timeout=300, **more)


def installed(script, prefix, build):
    """Every command, as installed."""
    work, attntrace = script.work, prefix / "bin/attntrace"
    (work / "subject.py").write_text(SUBJECT)
    traced = run(attntrace, "-o", "run.attn", "--keep-spool", "--", script.python, "subject.py", cwd=work)
    script.expect(traced.returncode == 0 and "findings=sdpa-math:" in traced.stderr, "a program is traced", traced.stderr)
    paths = traced.stdout.split()
    names = {pathlib.Path(path).name for path in paths}
    script.expect(names >= {"attntrace", "libattntrace_preload.so", "libattntrace_agent.so"} and
                  all(path.startswith(f"{prefix}/") for path in paths), f"command, preload and agent are the installed ones: {paths}")
    script.expect("fused   same shapes: " in traced.stderr, "a reference run was made", traced.stderr)

    shown = run(attntrace, "report", "run.attn", cwd=work)
    script.expect(shown.returncode == 0 and "sdpa-math" in shown.stdout, "report shows it", shown.stdout + shown.stderr)
    recovered = run(attntrace, "recover", "run.attntrace.d", "-o", "again.attn", cwd=work)
    again = run(attntrace, "report", "again.attn", cwd=work)
    script.expect(recovered.returncode == 0 and "sdpa-math" in again.stdout, "recover makes it anew", recovered.stderr)
    explained = run(attntrace, "explain", "sdpa-math")
    script.expect(explained.returncode == 0 and "sdpa-math" in explained.stdout, "explain has the rule's page")
    doctor = run(attntrace, "doctor", "--python", script.python, cwd=work)
    elsewhere = doctor.stdout.replace(str(prefix), "")
    script.expect(doctor.returncode == 0 and f"in {prefix}/lib" in doctor.stdout and str(build) not in elsewhere,
                  "doctor finds all under the prefix", doctor.stdout)


def no_path_back(script, prefix):
    """Nothing installed is to be looked for in the build folder."""
    bodies = [path for path in prefix.rglob("*") if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    for path in bodies:
        dynamic = run("readelf", "-d", "-W", path).stdout
        script.expect("(RPATH)" not in dynamic and "(RUNPATH)" not in dynamic, f"{path.relative_to(prefix)} has no search path of its own")
    links = [path for path in prefix.rglob("*") if path.is_symlink()]
    script.expect(len(bodies) >= 4 and not links, f"{len(bodies)} ELF files, no symbolic link {links}")


def no_agent(script, prefix):
    """An installation for other PyTorch versions: one line, and the program runs."""
    for agent in (prefix / "lib/attntrace").glob("torch-*"):
        agent.rename(agent.with_name("torch-1.0.0"))
    declined = run(prefix / "bin/attntrace", "-q", "-o", "none.attn", "--", script.python, PROGRAMS / "exit_code.py", cwd=script.work)
    own = run(script.python, PROGRAMS / "exit_code.py").stderr
    said = [line for line in declined.stderr.splitlines() if line not in own.splitlines()]
    script.expect(declined.returncode == 3, f"a PyTorch without agent: the program runs all the same ({declined.returncode})")
    script.expect(len(said) == 2 and "make build PYTHON=" in said[0] and "status=untraced" in said[1], f"one line says so: {said}")


def half_built(script, tools):
    """tools/install beside an agent that is still being built."""
    root = script.work / "half"
    for name, file in (("", "command"), ("/agents/1.0", "agent-1.0"), ("/agents/2.0", "agent-2.0")):
        source = root / f"source{name}"
        source.mkdir(parents=True)
        (source / "CMakeLists.txt").write_text(PROJECT.format(file=file))
        if file != "agent-2.0":  # not linked yet
            (source / file).touch()
        configured = run("cmake", "-S", source, "-B", root / f"build{name}")
        script.expect(configured.returncode == 0, f"cmake configures piece '{name}'", configured.stderr)
    (root / "build/agents/1.0/complete").touch()
    (root / "tools").mkdir()
    shutil.copy(tools / "install", root / "tools")
    done = run(root / "tools/install", root / "prefix")
    put = sorted(path.name for path in root.glob("prefix/share/*"))
    script.expect(done.returncode == 0 and put == ["agent-1.0", "command"], f"make install puts what is there: {put}", done.stderr)
    script.expect(done.stderr.count("\n") == 1 and "build/agents/2.0" in done.stderr, f"one line names the agent left out: {done.stderr}")
    shutil.rmtree(root / "build/agents")
    alone = run(root / "tools/install", root / "prefix")
    script.expect(alone.returncode == 0 and not alone.stderr, "nor does it want any further agent", alone.stderr)


def main():
    script = Script(__doc__, "install")
    build, prefix = script.attntrace.parent, script.work / "prefix"
    done = run("cmake", "--install", build, "--prefix", prefix)
    script.expect(done.returncode == 0, "cmake --install", done.stderr)
    if done.returncode == 0:
        installed(script, prefix, build)
        no_path_back(script, prefix)
        no_agent(script, prefix)
    half_built(script, pathlib.Path(__file__).resolve().parents[2] / "tools")
    return script.end()


if __name__ == "__main__":
    sys.exit(main())
