# create_block_mask on the full grid, on a GPU. Expected: block-mask-dense, full grid 1 GiB (32768 x 32768 bool), once; compiled:
# nothing. Usage: block_mask.py plain|compiled
import sys

import torch
from torch.nn.attention.flex_attention import create_block_mask

build = torch.compile(create_block_mask) if sys.argv[1] == "compiled" else create_block_mask
mask = build(lambda b, h, q, k: q >= k, None, None, 32768, 32768, device="cuda")
print("sparsity", mask.sparsity())
