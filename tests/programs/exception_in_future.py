# A selection that nothing registered, in one layer, called in a pool's thread: the future keeps the exception, nobody asks it for a
# result, and the program dies of something else.
# requires: transformers>=5.1
# exit: 1
from concurrent.futures import ThreadPoolExecutor

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2)
config._attn_implementation = "flash_typo"
layer = LlamaAttention(config, layer_idx=3)
x = torch.randn(2, 48, 64)
position = LlamaRotaryEmbedding(config)(x, torch.arange(48)[None])
with ThreadPoolExecutor(1) as pool:
    batches = [pool.submit(layer, x, position_embeddings=position, attention_mask=None) for _ in range(2)]
raise RuntimeError("no batch is complete")
