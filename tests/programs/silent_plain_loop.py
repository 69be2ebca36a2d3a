# A training loop with no attention at all.
import torch

model = torch.nn.Sequential(torch.nn.Conv1d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 14, 4))
optimiser = torch.optim.AdamW(model.parameters())
for _ in range(5):
    loss = torch.nn.functional.cross_entropy(model(torch.randn(8, 3, 16)), torch.randint(4, (8,)))
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
