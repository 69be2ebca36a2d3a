"""What a GPU check needs: runs of programs, untraced and traced, and reports as dictionaries."""

import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"


class Failed(AssertionError):
    pass


def expect(condition, text):
    if not condition:
        raise Failed(text)


def equal(what, got, wanted):
    expect(got == wanted, f"{what}: {got}, expected {wanted}")


class Job:
    """One run of the whole suite: where the traced programs' tools and results are."""

    def __init__(self, attntrace, out):
        self.attntrace = str(attntrace)
        self.out = pathlib.Path(out)
        self.work = self.out / "work"
        self.work.mkdir(parents=True, exist_ok=True)

    def untraced(self, program, *arguments, timeout=240, code=0, **variables):
        return self._run([sys.executable, str(PROGRAMS / program), *arguments], timeout, variables, code)

    def started(self, program, *arguments, traced):
        """A running program whose input, output and errors are pipes of text; nobody reads its report."""
        command = [sys.executable, str(PROGRAMS / program), *arguments]
        if traced:
            command = [self.attntrace, "-f", "-q", "--reference=off", "-o", str(self.work / "started.attn"), "--", *command]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.work)

    def traced(self, program, *arguments, options=(), launcher=None, timeout=300, name=None, code=0, **variables):
        """(what the program did, its report). `launcher` takes the place of the interpreter, for torchrun."""
        name = name or pathlib.Path(program).stem + "".join("-" + str(a) for a in arguments)
        report = self.work / (name + ".attn")
        # Reference runs share the GPU with whatever is checked beside them: only where a check is about them.
        references = [] if any(option.startswith("--reference=") for option in options) else ["--reference=off"]
        command = [self.attntrace, "-f", "-q", *references, "-o", str(report), *options, "--", *(launcher or [sys.executable]),
                   str(PROGRAMS / program), *arguments]
        result = self._run(command, timeout, variables, code)
        return result, self.report(report)

    def _run(self, command, timeout, variables, code=0):
        environment = {**os.environ, **{key: str(value) for key, value in variables.items()}}
        start = time.monotonic()
        result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, cwd=self.work)
        result.seconds = time.monotonic() - start
        if code is not None and result.returncode != code:
            tail = "\n".join((result.stdout + result.stderr).splitlines()[-12:])
            raise Failed(f"{' '.join(command)}: exit {result.returncode}\n{tail}")
        return result

    def report(self, path):
        result = subprocess.run([self.attntrace, "report", "--format", "json", str(path)], capture_output=True, text=True)
        expect(result.returncode == 0, f"{path.name} cannot be read: {result.stderr.strip()[-500:]}")
        return Report(json.loads(result.stdout), path.stem)


def number(message, key):
    return int(message.get(key, 0))


class Report:
    def __init__(self, message, name):
        self.message, self.name = message, name
        self.variants = message.get("variants", [])

    def counter(self, name, process=0):
        counters = self.message["processes"][process].get("counters", [])
        return next((number(c, "value") for c in counters if c["name"] == name), 0)

    def device(self, name, process=0):
        return next((d for d in self.message["processes"][process].get("devices", []) if d["device"] == name), {})

    def user_line(self, variant):
        """Line of the user's own code that led to the call, and the whole path's lines of the main program; 0 unknown."""
        if not variant.get("call_path"):
            return 0
        path = self.message["call_paths"][variant["call_path"] - 1]
        user = path.get("user", 0)
        return self.message["frames"][path["frames"][user]].get("line", 0) if user >= 0 else 0

    def lines(self, variant):
        if not variant.get("call_path"):
            return set()
        path = self.message["call_paths"][variant["call_path"] - 1]
        return {self.message["frames"][f].get("line", 0) for f in path["frames"] if self.message["frames"][f].get("owner") == "user"}

    def named(self, program):
        """Variants by the comment at the end of a line of the program that they came from: {name: {phase: [variant]}}."""
        names = {}
        for line, text in enumerate((PROGRAMS / program).read_text().splitlines(), 1):
            if "  # " in text:
                names[line] = text.rsplit("  # ", 1)[1]
        found = {name: {} for name in names.values()}
        for variant in self.variants:
            for line in self.lines(variant):
                if line in names:
                    found[names[line]].setdefault(variant["phase"], []).append(variant)
        return found

    def blind(self):
        return [(spot["code"], spot["text"]) for spot in self.message.get("blind_spots", [])]

    def check_laws(self):
        """Launches are conserved in every process, and what variants hold is what processes say was attributed."""
        for index, process in enumerate(self.message["processes"]):
            seen, attributed, rest = (self.counter("kernel_launches_" + word, index) for word in ("seen", "attributed", "unattributed"))
            equal(f"{self.name}: launches attributed + unattributed", attributed + rest, seen)
            mine = [v for v in self.variants if v.get("process", 0) == index]
            equal(f"{self.name}: launches of all variants", sum(number(v, "kernel_launches") for v in mine), attributed)
            for device in process.get("devices", []):
                equal(f"{self.name}: bytes of {device['device']}", number(device, "attributed_bytes") + number(device, "unattributed_bytes"),
                      number(device, "allocated_bytes"))
        equal(f"{self.name}: faults", self.counter("faults"), 0)


def kinds(variant):
    return {kernel.get("kind") for kernel in variant.get("kernels", [])}


def libraries(variant):
    return {kernel.get("library") for kernel in variant.get("kernels", []) if kernel.get("kind") in ("fused", "part")}
