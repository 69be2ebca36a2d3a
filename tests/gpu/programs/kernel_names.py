# Ten training steps of one attention each, by every way that has kernels of its own.
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention as sdpa

STEPS = 10
q, k, v = (torch.randn(2, 8, 512, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True) for _ in range(3))


def steps(call):
    for _ in range(STEPS):
        call().sum().backward()


def pinned(backend, call):
    with sdpa_kernel(backend):
        steps(call)


def by_hand():
    scores = torch.matmul(q, k.transpose(-2, -1)) / 8
    return torch.matmul(torch.softmax(scores, dim=-1), v)


compiled = torch.compile(flex_attention)

pinned(SDPBackend.FLASH_ATTENTION, lambda: sdpa(q, k, v))  # flash
pinned(SDPBackend.EFFICIENT_ATTENTION, lambda: sdpa(q, k, v))  # efficient
pinned(SDPBackend.CUDNN_ATTENTION, lambda: sdpa(q, k, v))  # cudnn
pinned(SDPBackend.MATH, lambda: sdpa(q, k, v))  # math
steps(lambda: by_hand())  # eager
steps(lambda: flex_attention(q, k, v))  # flex-dense
steps(lambda: compiled(q, k, v))  # flex-triton
torch.cuda.synchronize()
