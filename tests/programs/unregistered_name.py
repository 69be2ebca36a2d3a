# A selection that nothing registered, in one layer built from a bare config. The program keeps the exception and dies of another.
# requires: transformers>=5.1
# exit: 1
import torch
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertEncoder

config = BertConfig(hidden_size=32, num_attention_heads=2, num_hidden_layers=1, intermediate_size=64, vocab_size=64)
config._attn_implementation = "flash_typo"
encoder = BertEncoder(config).eval()
try:
    encoder(torch.randn(1, 128, 32))
except KeyError as error:
    kept = error
raise RuntimeError("no batch could be evaluated")
