# Bare layers that were built on the meta device, or inside a module of the program's, and moved and cast since: where each was built
# is known all the same. A layer whose weights were never drawn has no such line.
# requires: transformers
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2)


class Draft(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.layers = torch.nn.ModuleList(LlamaAttention(config, layer_idx) for layer_idx in range(3))


def run(layer, length):
    x = torch.randn(1, length, 64)
    position = LlamaRotaryEmbedding(config)(x, torch.arange(length)[None])
    return layer(x, position_embeddings=position, attention_mask=None)


with torch.device("meta"):
    moved = LlamaAttention(config, layer_idx=3)
run(moved.to_empty(device="cpu"), 48)
for layer in Draft(config).half().float().layers:
    run(layer, 64)
torch.nn.Linear.reset_parameters = lambda self: None
drawn_never = LlamaAttention(config, layer_idx=4)
run(drawn_never, 80)
