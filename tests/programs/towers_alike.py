# Two parts with configurations of one class: the encoder was left at eager, or eager was asked for it by its name.
# requires: transformers>=5
import torch
import transformers as hf


def look(attention, change=None):
    part = hf.BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
    config = hf.EncoderDecoderConfig.from_encoder_decoder_configs(part, part)
    model = hf.EncoderDecoderModel._from_config(config, attn_implementation=attention).eval()
    if change:
        model.encoder.config._attn_implementation = change
    ids = torch.arange(16)[None]
    with torch.no_grad():
        model(input_ids=ids, decoder_input_ids=ids)


look("sdpa", change="eager")
