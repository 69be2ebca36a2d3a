# Hand-written cross attention, rank 3, Sq and Sk apart, no gradients: one variant per line, forward only.
import torch


def cross(x, memory):
    weights = (x @ memory.transpose(1, 2)).softmax(dim=-1)
    return weights @ memory


with torch.no_grad():
    cross(torch.randn(2, 24, 32), torch.randn(2, 40, 32))
with torch.inference_mode():
    cross(torch.randn(2, 24, 32), torch.randn(2, 56, 32))
