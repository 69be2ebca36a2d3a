# A Llama attention layer built from a bare config: nothing was selected, and no causal mask is made for it.
# requires: transformers
# with: base transformers-4.56 transformers-4.48
# exit: as expected
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2)
layer = LlamaAttention(config, layer_idx=0)
x = torch.randn(2, 48, 64)
position = LlamaRotaryEmbedding(config)(x, torch.arange(48)[None])
layer(x, position_embeddings=position, attention_mask=None)[0].sum().backward()
