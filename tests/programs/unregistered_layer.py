# A selection that nothing registered, in one layer built from a bare config; nobody catches the exception.
# requires: transformers
# with: base transformers-4.56 transformers-4.48
# exit: 1
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2)
config._attn_implementation = "flash_typo"
layer = LlamaAttention(config, layer_idx=3)
x = torch.randn(2, 48, 64)
layer(x, position_embeddings=LlamaRotaryEmbedding(config)(x, torch.arange(48)[None]), attention_mask=None)
