# Children of every kind: subprocess, spawn, fork, exec, and one that is no Python. Each Python that computes is traced.
import multiprocessing
import os
import subprocess
import sys

CHILD = "import torch; x = torch.randn(1, 2, {0}, 8); torch.nn.functional.scaled_dot_product_attention(x, x, x)"


def attend(length):
    import torch
    x = torch.randn(1, 2, length, 8)
    torch.nn.functional.scaled_dot_product_attention(x, x, x)


def main():
    subprocess.run(["true"], check=True)
    subprocess.run([sys.executable, "-c", CHILD.format(16)], check=True)
    spawned = multiprocessing.get_context("spawn").Process(target=attend, args=(24,))
    spawned.start()
    spawned.join()
    import torch  # noqa: F401 - loaded before the fork, so that the child inherits a traced process
    pid = os.fork()
    if pid == 0:
        attend(32)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0 and spawned.exitcode == 0
    attend(40)
    os.execv(sys.executable, [sys.executable, "-c", CHILD.format(48)])


if __name__ == "__main__":
    main()
