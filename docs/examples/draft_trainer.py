"""The fix that is not reached. A draft model attends through its own compiled wrapper; the target that it learns from is loaded by
Transformers, and reaches flex_attention by a path of its own, which nothing compiles.

    attntrace -- python draft_trainer.py            two paths: one fused, one dense
    attntrace -- python draft_trainer.py --fixed    the printed advice applied: nothing is found

Trains on a GPU; on a CPU, where flex_attention has no backward, it runs the forward.
"""
import argparse

import torch
import transformers
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import vendor_attention

compiled = torch.compile(flex_attention)
build_mask = torch.compile(create_block_mask)


def block_causal(b, h, q, k):
    return (q >= k) & (q // 256 - k // 256 < 4)


class Draft(nn.Module):
    """One layer that sees the target's hidden states in blocks."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.out(compiled(q, k, v, block_mask=mask).transpose(1, 2).flatten(2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--length", type=int, default=0, help="default: 4096 on a GPU, 512 on a CPU")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--fixed", action="store_true")
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    length = options.length or (4096 if device == "cuda" else 512)

    vendor_attention.register()
    if options.fixed:
        vendor_attention.flex_attention = compiled
    torch.manual_seed(0)
    config = transformers.Qwen3Config(vocab_size=256, hidden_size=512, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=8,
                                      head_dim=64, intermediate_size=512)
    target = transformers.Qwen3Model._from_config(config, attn_implementation="vendor_flex").to(device, dtype)
    draft = Draft(512, 8).to(device, dtype)
    optimizer = torch.optim.AdamW([*draft.parameters(), *target.parameters()], lr=1e-4)
    mask = build_mask(block_causal, None, None, length, length, device=device)

    for _ in range(options.steps):
        tokens = torch.randint(0, 256, (1, length), device=device)
        with torch.set_grad_enabled(device == "cuda"):
            hidden = target(tokens).last_hidden_state
            loss = (draft(hidden, mask) - hidden.detach()).pow(2).mean()
        if device == "cuda":
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
