# Windowed attention as Longformer computes it: overlapping chunks of scores, put together in a buffer that was made before them; the
# weights are padded before they meet their values. One call, forward and backward.
import torch

torch.manual_seed(0)
heads, length, window, width = 2, 64, 8, 16
q, k, v = (torch.randn(heads, length, width, requires_grad=True) for _ in range(3))


def chunks(x):
    return x.unfold(1, 2 * window, window).transpose(2, 3)


products = torch.einsum("hcxd,hcyd->hcxy", chunks(q), chunks(k))
scores = products.new_full((heads, products.shape[1] + 1, window, 2 * window), float("-inf"))
scores[:, :-1] = products[:, :, :window]
scores[:, -1] = products[:, -1, window:]
weights = torch.nn.functional.pad(torch.softmax(scores, dim=-1), (0, window))
values = torch.nn.functional.pad(v, (0, 0, 0, 2 * window)).unfold(1, 3 * window, window)[:, : weights.shape[1]]
out = torch.einsum("hcxy,hcdy->hcxd", weights, values)
out.sum().backward()
