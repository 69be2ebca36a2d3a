# The program catches that nothing registered its selection, and takes another one: nothing is to be told of a run that ended well.
# requires: transformers>=5
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2)
layer = LlamaAttention(config, layer_idx=0)
x = torch.randn(2, 48, 64)
position = LlamaRotaryEmbedding(config)(x, torch.arange(48)[None])
for selection in ("flash_typo", "sdpa"):
    config._attn_implementation = selection
    try:
        layer(x, position_embeddings=position, attention_mask=None)
    except (KeyError, ValueError):
        continue
