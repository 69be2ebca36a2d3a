"""A million attention calls from one line, then the size of this process's spool."""
import os
import sys

import torch

torch.set_num_threads(1)
x = torch.randn(1, 1, 2, 4)
with torch.inference_mode():
    for _ in range(int(sys.argv[1])):
        torch.nn.functional.scaled_dot_product_attention(x, x, x)
folder = os.environ["ATTNTRACE_SPOOL_DIR"]
print("spool", sum(entry.stat().st_size for entry in os.scandir(folder) if entry.name.endswith(".spool")))
