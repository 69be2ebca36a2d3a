# Death by SIGTERM, passed on as it is; nothing that was counted is lost.
# signal: 15
import os
import signal

import torch

x = torch.randn(1, 2, 16, 8)
torch.nn.functional.scaled_dot_product_attention(x, x, x)
os.kill(os.getpid(), signal.SIGTERM)
