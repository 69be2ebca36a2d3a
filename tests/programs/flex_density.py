# How many of its blocks the mask of an uncompiled flex_attention keeps: without and with full blocks, of several batches and heads,
# of a length that blocks do not divide, of counts that do not lie side by side. The same calls compiled are fused.
# timeout: 240
import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention


def tensors(batch, heads, length):
    torch.manual_seed(0)
    return [torch.randn(batch, heads, length, 16) for _ in range(3)]


def window(b, h, i, j):
    return (i - j).abs() <= 8


def causal(b, h, i, j):
    return i >= j


def by_head(b, h, i, j):
    return (h > 0) & (b > 0) & (i >= j)


def mask_of(mod, batch, heads, length):
    return create_block_mask(mod, batch, heads, length, length, device="cpu")


masks = {
    512: mask_of(window, None, None, 512),
    640: mask_of(causal, None, None, 640),
    256: mask_of(by_head, 2, 2, 256),
}
of_four = mask_of(by_head, 2, 4, 384)
of_two = [part[:, ::2] for part in (of_four.kv_num_blocks, of_four.kv_indices, of_four.full_kv_num_blocks, of_four.full_kv_indices)]
masks[384] = BlockMask.from_kv_blocks(*of_two, mask_mod=by_head)
if torch.__version__ >= "2.11":  # before, such a length is cropped
    masks[300] = mask_of(causal, None, None, 300)
shapes = {length: tensors(2, 2, length) for length in masks}
compiled = torch.compile(flex_attention, dynamic=False)
with torch.no_grad():
    plain = {}
    for length, mask in masks.items():
        plain[length] = flex_attention(*shapes[length], block_mask=mask)
        flex_attention(*shapes[length], block_mask=mask)
    for length in (512, 640):  # the control
        torch.testing.assert_close(compiled(*shapes[length], block_mask=masks[length]), plain[length])
for length, mask in masks.items():
    print(length, f"{100 - mask.sparsity():.3g}")
