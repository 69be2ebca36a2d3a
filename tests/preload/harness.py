"""One traced job against the fake agent (tests/fakes/agent.cc): a spool folder, a folder of agents, programs run with the preload.

Where things are comes from the environment, set by CTest: PRELOAD, FAKE_AGENT, NATIVE_PROGRAMS; the Python that runs the tests is
the one whose PyTorch is traced.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PRELOAD = os.environ["PRELOAD"]
NATIVE_PROGRAMS = pathlib.Path(os.environ["NATIVE_PROGRAMS"])


def torch_folder():
    import importlib.util

    return pathlib.Path(importlib.util.find_spec("torch").origin).parent


def torch_version():
    text = (torch_folder() / "version.py").read_text()
    return re.search(r"__version__ = '(.*)'", text).group(1)


def agent_folder():
    """The folder name that the preload must come to, found by other means: from the exported symbols of libc10."""
    with open(torch_folder() / "lib" / "libc10.so", "rb") as file:
        new_abi = b"torchCheckFailEPKcS2_jRKNSt7__cxx11" in file.read()
    return "torch-" + torch_version().split("+")[0] + ("" if new_abi else "-oldabi")


class Job:
    def __init__(self, agents=None):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="attntrace-test-"))
        self.spool = self.root / "spool"
        self.agents = self.root / "agents"
        self.spool.mkdir()
        self.agents.mkdir()
        for name in [agent_folder()] if agents is None else agents:
            self.install(name)

    def close(self):
        shutil.rmtree(self.root)

    def install(self, name):
        (self.agents / name).mkdir()
        shutil.copy(os.environ["FAKE_AGENT"], self.agents / name / "libattntrace_agent.so")

    def environment(self, **more):
        variables = dict(os.environ, LD_PRELOAD=PRELOAD, ATTNTRACE_SPOOL_DIR=str(self.spool),
                         ATTNTRACE_AGENT_DIR=str(self.agents), FAKE_AGENT_LOG=str(self.root / "log"))
        variables.update(more)
        return {name: value for name, value in variables.items() if value is not None}

    def run(self, *command, timeout=120, **more):
        return subprocess.run([str(part) for part in command], env=self.environment(**more), capture_output=True, text=True,
                              timeout=timeout)

    def python(self, program, *arguments, **more):
        return self.run(sys.executable, "-c", program, *arguments, **more)

    def logs(self):
        """What the fake agents wrote, by process: {pid: [(word, {key: value})]}."""
        logs = {}
        for path in self.root.glob("log.*"):
            records = []
            for line in path.read_text().splitlines():
                word, *pairs = line.split()
                records.append((word, dict(pair.split("=", 1) for pair in pairs if "=" in pair)))
            logs[int(path.suffix[1:])] = records
        return logs

    def only_log(self):
        logs = self.logs()
        assert len(logs) == 1, logs
        return next(iter(logs.values()))

    def untraced(self):
        return [path.read_text() for path in self.spool.glob("*.untraced")]


def run_untraced(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=120)
