# flex_attention has no backward on a CPU: a thread dies of it, then the program. Without gradients it runs.
# requires: torch>=2.10
# exit: 1
import threading

import torch
from torch.nn.attention.flex_attention import flex_attention

q = torch.randn(1, 2, 128, 16, requires_grad=True)
with torch.no_grad():
    flex_attention(q.detach(), q.detach(), q.detach())
thread = threading.Thread(target=lambda: flex_attention(q, q, q), name="worker")
thread.start()
thread.join()
flex_attention(q, q, q)
