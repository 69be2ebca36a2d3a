# An uncaught exception: Python's own traceback, exit code 1, and a report of all that happened before.
# exit: 1
import torch

x = torch.randn(1, 2, 16, 8)
torch.nn.functional.scaled_dot_product_attention(x, x, x)
raise ValueError("the program's own error")
