"""The selection that is missing. Draft layers are built from a bare LlamaConfig, so nothing selects their attention; the mask is a
BlockMask.

    attntrace -- python draft_layers.py                          nothing selected: an error, or the wrong result
    attntrace -- python draft_layers.py --select sdpa            the obvious choice does not take a BlockMask
    attntrace -- python draft_layers.py --select flex_attention  the one that does
    attntrace -- python draft_layers.py --mask none              nothing selected, and no mask: eager runs, and sees the future

Trains on a GPU; on a CPU, where flex_attention has no backward, it runs the forward. Transformers 4.48 and newer.
"""
import argparse

import torch
import transformers
from torch.nn.attention.flex_attention import create_block_mask
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding


def causal(b, h, q, k):
    return q >= k


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--select", default=None)
    parser.add_argument("--mask", choices=("block", "none"), default="block")
    parser.add_argument("--length", type=int, default=256)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"

    torch.manual_seed(0)
    config = transformers.LlamaConfig(hidden_size=256, num_attention_heads=4, num_key_value_heads=4, intermediate_size=256)
    if options.select:
        config._attn_implementation = options.select
    layers = torch.nn.ModuleList(LlamaDecoderLayer(config, layer_idx) for layer_idx in range(2)).to(device)
    rotary = LlamaRotaryEmbedding(config).to(device)
    x = torch.randn(1, options.length, 256, device=device)
    positions = torch.arange(options.length, device=device)[None]
    mask = None
    if options.mask == "block":
        mask = torch.compile(create_block_mask)(causal, None, None, options.length, options.length, device=device)

    with torch.set_grad_enabled(device == "cuda"):
        for layer in layers:
            x = layer(x, attention_mask=mask, position_embeddings=rotary(x, positions))
            x = x[0] if isinstance(x, tuple) else x
        loss = x.pow(2).mean()
    if device == "cuda":
        loss.backward()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
