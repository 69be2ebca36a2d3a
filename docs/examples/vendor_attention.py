"""Stands for a library: an attention function for Transformers that calls flex_attention plainly, by a name of its own."""
from torch.nn.attention.flex_attention import flex_attention
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, flex_attention_mask


def attention_forward(module, query, key, value, attention_mask, scaling=None, **kwargs):
    out = flex_attention(query, key, value, block_mask=attention_mask, scale=scaling, enable_gqa=query.shape[1] != key.shape[1])
    return out.transpose(1, 2).contiguous(), None


def register(name="vendor_flex"):
    AttentionInterface.register(name, attention_forward)
    AttentionMaskInterface.register(name, flex_attention_mask)
