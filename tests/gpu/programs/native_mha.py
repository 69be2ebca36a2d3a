# nn.TransformerEncoder in evaluation: its layers' fast path, with and without padding, and where no fused kernel takes the heads.
import torch


def encoder(width, heads):
    layer = torch.nn.TransformerEncoderLayer(width, heads, width, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2).eval().to("cuda", torch.bfloat16)


x = torch.randn(3, 512, 256, dtype=torch.bfloat16, device="cuda")
padding = torch.arange(512, device="cuda") >= torch.tensor([[512], [170], [50]], device="cuda")
# Heads of 4 have a size that is no multiple of 8.
wide, narrow = encoder(256, 4), encoder(256, 64)
with torch.no_grad():
    for _ in range(2):
        wide(x)  # all rows
        wide(x, src_key_padding_mask=padding)  # padded
        narrow(x)  # heads of 4
        narrow(x, src_key_padding_mask=padding)  # heads of 4, padded
torch.cuda.synchronize()
