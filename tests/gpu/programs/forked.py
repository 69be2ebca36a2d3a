# Workers that fork after CUDA is in use, and that themselves call attention on the CPU; the parent goes on meanwhile.
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from torch.utils.data import DataLoader, Dataset


class Data(Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        x = torch.randn(1, 2, 16, 8)
        return sdpa(x, x, x)  # in a worker


q = torch.randn(1, 8, 512, 64, dtype=torch.bfloat16, device="cuda", requires_grad=True)
sdpa(q, q, q).sum().backward()
torch.cuda.synchronize()
seen = 0
for batch in DataLoader(Data(), batch_size=4, num_workers=2, multiprocessing_context="fork"):
    sdpa(q, q, q).sum().backward()  # in the parent
    seen += batch.shape[0]
torch.cuda.synchronize()
print(seen)
