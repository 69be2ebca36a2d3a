# Two threads, each with a target and a draft of attention of its own: on two devices where there are two, else on two streams.
import threading

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

STEPS = 50
devices = torch.cuda.device_count()


def work(rank):
    torch.cuda.set_device(rank % devices)
    with torch.cuda.stream(torch.cuda.Stream()):
        target = [torch.randn(1, 8, 512, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3)]
        draft = [torch.randn(1, 4, 256 + 64 * rank, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3)]
        for _ in range(STEPS):
            sdpa(*target, is_causal=True).sum().backward()  # target
            sdpa(*draft).sum().backward()  # draft
        torch.cuda.synchronize()


threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
