# Two ranks of data parallel training under torchrun, each on its own device.
import os

import torch
import torch.distributed as dist
from torch.nn.functional import scaled_dot_product_attention as sdpa

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(512, 1536)

    def forward(self, x):
        q, k, v = self.qkv(x).view(2, 256, 3, 8, 64).permute(2, 0, 3, 1, 4)
        return sdpa(q, k, v, is_causal=True)


model = torch.nn.parallel.DistributedDataParallel(Layer().cuda().bfloat16(), device_ids=[rank])
x = torch.randn(2, 256, 512, dtype=torch.bfloat16, device="cuda")
for _ in range(10):
    model(x).sum().backward()
torch.cuda.synchronize()
dist.destroy_process_group()
