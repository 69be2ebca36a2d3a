# Eight threads at once, each with shapes of its own: every call is counted, and none with another's shapes.
import threading

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

barrier = threading.Barrier(8)


def work(length):
    q, k, v = (torch.randn(1, 2, length, 16, requires_grad=True) for _ in range(3))
    barrier.wait()
    for _ in range(50):
        sdpa(q, k, v).sum().backward()


threads = [threading.Thread(target=work, args=(8 * (i + 1),)) for i in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
