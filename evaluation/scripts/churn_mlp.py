import os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(3)

STEPS = int(os.environ.get("STEPS", "22000"))
ROWS = 60_000
FEATURES = 24
BATCH = 512


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(FEATURES, 96), nn.SiLU(),
            nn.Linear(96, 96), nn.SiLU(),
            nn.Linear(96, 1),
        )

    def forward(self, x):
        return self.body(x).squeeze(-1)


features = torch.randn(ROWS, FEATURES)
churned = (features[:, :4].sum(1) + 0.5 * torch.randn(ROWS) > 0).float()
customers = TensorDataset(features, churned)
rng = torch.Generator().manual_seed(5)
loader = DataLoader(customers, batch_size=BATCH, shuffle=True, drop_last=True, generator=rng)

net = ChurnNet()
opt = torch.optim.AdamW(net.parameters(), lr=2e-3, fused=True)


@torch.compile
def loss_of(x, y):
    return nn.functional.binary_cross_entropy_with_logits(net(x), y)


batches = iter(loader)
for step in range(STEPS):
    try:
        x, y = next(batches)
    except StopIteration:
        batches = iter(loader)
        x, y = next(batches)
    opt.zero_grad()
    loss = loss_of(x, y)
    loss.backward()
    opt.step()
    if step % 500 == 0:
        print(step, f"{loss.item():.4f}")

print("final loss", loss.item())
