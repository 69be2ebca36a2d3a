# Three kinds of attention captured in one CUDA graph, forward and backward, and replayed seven times.
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

q, k, v = (torch.randn(1, 8, 512, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3))


def by_hand():
    return torch.matmul(torch.softmax(torch.matmul(q, k.transpose(-2, -1)), dim=-1), v)


def step():
    out = sdpa(q, k, v)  # sdpa
    out = out + sdpa(q, k, v, is_causal=True)  # causal
    out = out + by_hand()  # eager
    torch.autograd.grad(out.sum(), (q, k, v))


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    step()
for _ in range(7):
    graph.replay()
torch.cuda.synchronize()
