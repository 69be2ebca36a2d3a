# A BERT encoder built straight from its config: nothing was selected. BERT is not causal, so the result is right.
# requires: transformers
# with: base transformers-4.56 transformers-4.48
# exit: as expected
import torch
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertEncoder

config = BertConfig(hidden_size=32, num_attention_heads=2, num_hidden_layers=1, intermediate_size=64, vocab_size=64)
encoder = BertEncoder(config).eval()
with torch.no_grad():
    encoder(torch.randn(1, 128, 32))
