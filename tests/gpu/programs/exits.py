# Ends in the way that its argument says, with kernels still running.
import os
import signal
import sys
import threading

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

q = torch.randn(8, 16, 4096, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True)
for _ in range(30):
    sdpa(q, q, q).sum().backward()
way = sys.argv[1]
if way == "exit":
    sys.exit(3)
elif way == "os._exit":
    os._exit(4)
elif way == "raise":
    raise RuntimeError("as it was asked for")
elif way == "thread":  # another thread goes on launching while the interpreter ends
    def forever():
        while True:
            sdpa(q, q, q)

    threading.Thread(target=forever, daemon=True).start()
elif way == "sigterm":
    os.kill(os.getpid(), signal.SIGTERM)
elif way == "fault":  # a device-side assertion: every later call into CUDA fails
    torch.zeros(4, device="cuda")[torch.tensor([9], device="cuda")]
    torch.cuda.synchronize()
