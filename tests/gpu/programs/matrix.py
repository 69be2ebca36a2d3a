# Every case of the measured matrix on CUDA, one line each, forward and backward. CUDNN=0 switches cuDNN off.
import os

import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa

torch.backends.cuda.enable_cudnn_sdp(os.environ.get("CUDNN", "1") == "1")
S = 512


def t(*shape, dtype=torch.bfloat16):
    return torch.randn(shape, dtype=dtype, device="cuda", requires_grad=True)


def case(call):
    try:
        call().sum().backward()
    except RuntimeError as error:
        print("refused:", str(error).splitlines()[0])


q, k, v = (t(1, 8, S, 64) for _ in range(3))
kv = t(1, 2, S, 64)
wide, wide_kv = t(1, 8, S, 512), t(1, 2, S, 512)
f32, f64, f16 = (t(1, 8, S, 64, dtype=d) for d in (torch.float32, torch.float64, torch.float16))
d256, d7, d80 = t(1, 8, S, 256), t(1, 8, S, 7), t(1, 8, S, 80)
bool_mask = torch.ones(S, S, dtype=torch.bool, device="cuda").tril()
float_mask = torch.zeros(S, S, dtype=torch.bfloat16, device="cuda")
flat = t(8, S, 64)
empty = t(1, 8, 0, 64)
short = t(1, 8, 64, 64)

case(lambda: sdpa(q, k, v))  # plain
case(lambda: sdpa(q, k, v, is_causal=True))  # causal
case(lambda: sdpa(q, k, v, attn_mask=bool_mask))  # bool mask
case(lambda: sdpa(q, k, v, attn_mask=float_mask))  # float mask
case(lambda: sdpa(q, k, v, attn_mask=float_mask.float()))  # float32 mask
case(lambda: sdpa(q, k, v, attn_mask=t(S, S)))  # mask with gradient
case(lambda: sdpa(f32, f32, f32))  # float32
case(lambda: sdpa(f64, f64, f64))  # float64
case(lambda: sdpa(f16, f16, f16))  # float16
case(lambda: sdpa(q, kv, kv, is_causal=True, enable_gqa=True))  # gqa causal
case(lambda: sdpa(q, kv, kv, attn_mask=bool_mask, enable_gqa=True))  # gqa mask
case(lambda: sdpa(wide, wide_kv, wide_kv, enable_gqa=True))  # gqa D=512
case(lambda: sdpa(d256, d256, d256))  # D=256
case(lambda: sdpa(wide, wide, wide))  # D=512
case(lambda: sdpa(d7, d7, d7))  # D=7
case(lambda: sdpa(d80, d80, d80))  # D=80
case(lambda: sdpa(q, k, t(1, 8, S, 32)))  # Dv is not D
case(lambda: sdpa(q, k, v, dropout_p=0.1))  # dropout
case(lambda: sdpa(short, k, v, is_causal=True))  # causal, Sq is not Sk
case(lambda: sdpa(t(1, 8, 64, S).transpose(2, 3), k, v))  # stride
case(lambda: sdpa(flat, flat, flat))  # 3-D
case(lambda: sdpa(q, empty, empty))  # Sk=0
case(lambda: sdpa(t(1, 8, 1, 64), k, v))  # Sq=1
with torch.autocast("cuda", torch.bfloat16):
    case(lambda: sdpa(f32, f32, f32))  # autocast
