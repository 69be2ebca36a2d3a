# Draft layers built from a bare config and handed a BlockMask, as a speculator's are: which of None's three meanings kills them.
# requires: transformers
# with: base transformers-4.56 transformers-4.48
# exit: 1
import torch
from torch.nn.attention.flex_attention import create_block_mask
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128)
layers = torch.nn.ModuleList(LlamaDecoderLayer(config, layer_idx) for layer_idx in range(2))
x = torch.randn(1, 128, 64)
mask = create_block_mask(lambda b, h, q, k: q >= k, None, None, 128, 128, device="cpu")
position = LlamaRotaryEmbedding(config)(x, torch.arange(128)[None])
for layer in layers:
    x = layer(x, attention_mask=mask, position_embeddings=position)
