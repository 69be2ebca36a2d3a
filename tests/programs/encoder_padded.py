# nn.TransformerEncoder with a padding mask, in evaluation: its fast path drops the padding (a nested tensor), and stores every score.
import torch

layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
encoder = torch.nn.TransformerEncoder(layer, 2).eval()
x = torch.randn(3, 40, 32)
padding = torch.arange(40) >= torch.tensor([[40], [17], [5]])
with torch.no_grad():
    encoder(x, src_key_padding_mask=padding)
    # The longest row decides how much is stored.
    encoder(x, src_key_padding_mask=padding | (torch.arange(40) >= 30))
    # The module alone: padding stays, and its mask goes along.
    layer.self_attn.eval()(x, x, x, key_padding_mask=padding, need_weights=False)
