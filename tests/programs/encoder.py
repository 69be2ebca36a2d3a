# nn.TransformerEncoder in training with a causal mask, and in evaluation where its layers take their fast path.
import torch

layer = torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
encoder = torch.nn.TransformerEncoder(layer, 2)
x = torch.randn(2, 40, 32)
mask = torch.nn.Transformer.generate_square_subsequent_mask(40)
for _ in range(2):
    encoder(x).sum().backward()
encoder(x, mask=mask, is_causal=True).sum().backward()
encoder.eval()
with torch.no_grad():
    encoder(x)
