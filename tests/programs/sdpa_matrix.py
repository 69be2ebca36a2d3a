# Every case of the measured matrix, one line each, forward and backward where PyTorch has one.
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa


def t(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, dtype=dtype, requires_grad=True)


def train(out):
    out.sum().backward()


S = 128
q, k, v = (t(1, 8, S, 64) for _ in range(3))
kv = t(1, 2, S, 64)
bool_mask = torch.rand(S, S) > 0.5
bool_mask |= torch.eye(S, dtype=torch.bool)
float_mask = torch.rand(S, S, dtype=torch.bfloat16)

train(sdpa(q, k, v))  # plain
train(sdpa(q, k, v, is_causal=True))  # causal
train(sdpa(q, k, v, attn_mask=bool_mask))  # bool mask
train(sdpa(q, k, v, attn_mask=float_mask))  # float mask, same dtype
train(sdpa(q, k, v, attn_mask=float_mask.float()))  # float32 mask on bfloat16
train(sdpa(q, k, v, attn_mask=t(S, S)))  # mask that requires grad
train(sdpa(t(1, 8, S, 64, dtype=torch.float32), *(t(1, 8, S, 64, dtype=torch.float32) for _ in "kv")))  # float32
train(sdpa(t(1, 8, S, 64, dtype=torch.float64), *(t(1, 8, S, 64, dtype=torch.float64) for _ in "kv")))  # float64
train(sdpa(t(1, 8, S, 64, dtype=torch.float16), *(t(1, 8, S, 64, dtype=torch.float16) for _ in "kv")))  # float16
train(sdpa(q, kv, kv, is_causal=True, enable_gqa=True))  # grouped, causal
train(sdpa(q, kv, kv, attn_mask=bool_mask, enable_gqa=True))  # grouped and a mask
train(sdpa(t(1, 8, S, 512), t(1, 2, S, 512), t(1, 2, S, 512), enable_gqa=True))  # grouped, D=512
train(sdpa(t(1, 8, S, 256), t(1, 8, S, 256), t(1, 8, S, 256)))  # D=256
train(sdpa(t(1, 8, S, 512), t(1, 8, S, 512), t(1, 8, S, 512)))  # D=512
train(sdpa(t(1, 8, S, 7), t(1, 8, S, 7), t(1, 8, S, 7)))  # D=7
train(sdpa(t(1, 8, S, 80), t(1, 8, S, 80), t(1, 8, S, 80)))  # D=80
train(sdpa(q, k, t(1, 8, S, 32)))  # Dv is not D
train(sdpa(q, k, v, dropout_p=0.1))  # dropout
train(sdpa(t(1, 8, 64, 64), k, v, is_causal=True))  # causal, Sq is not Sk
train(sdpa(t(1, 8, 64, S).transpose(2, 3), k, v))  # last dimension of q not stride 1
train(sdpa(t(8, S, 64), t(8, S, 64), t(8, S, 64)))  # 3-D
train(sdpa(q, t(1, 8, 0, 64), t(1, 8, 0, 64)))  # Sk = 0
train(sdpa(t(1, 8, 1, 64), k, v))  # Sq = 1
with torch.autocast("cpu", torch.bfloat16):
    train(sdpa(t(1, 8, S, 64, dtype=torch.float32), *(t(1, 8, S, 64, dtype=torch.float32) for _ in "kv")))  # autocast
