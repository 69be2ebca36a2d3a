# An exit code of the program's own, after attention ran.
# exit: 3
import sys

import torch

x = torch.randn(1, 2, 16, 8)
torch.nn.functional.scaled_dot_product_attention(x, x, x)
sys.exit(3)
