# An implementation that nothing registered, in one layer. The program catches what comes of it, says nothing, and dies of what is
# missing afterwards.
# requires: transformers
# with: base transformers-4.56 transformers-4.48
# exit: 1
import gc

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

config = LlamaConfig(hidden_size=64, num_attention_heads=4, num_key_value_heads=2)
config._attn_implementation = "flash_typo"
layer = LlamaAttention(config, layer_idx=3)
x = torch.randn(2, 48, 64)
position = LlamaRotaryEmbedding(config)(x, torch.arange(48)[None])


def evaluate():
    try:
        return layer(x, position_embeddings=position, attention_mask=None)
    except Exception:
        return None


def evaluate_again():
    failed = None
    try:
        return layer(x, position_embeddings=position, attention_mask=None)
    except Exception as error:
        failed = error  # and the error holds this frame: left to the garbage collector
    return None


for _ in range(2):
    result = evaluate()
evaluate_again()
gc.collect()
print(result[0].shape)
