"""Speaks kernels/protocol.h to an attntrace-reference."""
import os
import subprocess
import urllib.parse


def contiguous(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= max(size, 1)
    return strides


def tensor(sizes, dtype="float32", grad=True, strides=None):
    numbers = lambda values: ",".join(map(str, values))
    return f"{numbers(sizes)}/{numbers(strides or contiguous(sizes))}/{dtype}/{'g' if grad else '-'}"


class Reference:
    """`ask(path, q=..., k=..., ...)` gives the response as a dict of text and numbers."""

    def __init__(self, executable, torch_lib, before=(), env=()):
        """`before`: a command that runs it (an interpreter, a tool)."""
        env = {**os.environ, "LD_LIBRARY_PATH": str(torch_lib), "OMP_WAIT_POLICY": "PASSIVE", **dict(env)}
        self.process = subprocess.Popen([*before, str(executable)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.count = 0

    def ask(self, path, **fields):
        self.count += 1
        words = {"id": self.count, "path": path, "backward": 1, "limit_ms": 0, **fields}
        line = " ".join(f"{key}={urllib.parse.quote(str(value), safe='/,:+-.')}" for key, value in words.items())
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the reference ended with {self.process.wait()} at: {line}")
        fields = dict(word.split("=", 1) for word in answer.split())
        number = lambda text: float(text) if any(c in text for c in ".en") else int(text)
        return {key: urllib.parse.unquote(value) if key in ("status", "words", "backend") else number(value)
                for key, value in fields.items()}

    def close(self):
        self.process.stdin.close()
        return self.process.wait()
