"""Fit a new defect classifier on top of a pretrained inspection backbone."""
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(13)

STEPS = int(os.environ.get("STEPS", "1800"))
PATCHES, DIM, CLASSES, BATCH = 32, 192, 12, 16


class MixBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.token = nn.Linear(PATCHES, PATCHES)
        self.up = nn.Linear(DIM, 2 * DIM)
        self.down = nn.Linear(2 * DIM, DIM)

    def forward(self, x):
        x = x + self.token(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.down(F.gelu(self.up(x)))


class Inspector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(75, DIM)
        self.backbone = nn.Sequential(*[MixBlock() for _ in range(4)])
        self.head = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES))

    def forward(self, patches):
        feats = self.backbone(self.stem(patches))
        return self.head(feats.mean(dim=1))


model = Inspector()
net = torch.compile(model)
opt = torch.optim.SGD(model.head.parameters(), lr=0.05)
images = torch.randn(8, BATCH, PATCHES, 75)
labels = torch.randint(0, CLASSES, (8, BATCH))

for step in range(STEPS):
    noisy = images[step % 8] + 0.05 * torch.randn(BATCH, PATCHES, 75)
    loss = F.cross_entropy(net(noisy), labels[step % 8])
    model.zero_grad()
    loss.backward()
    opt.step()

print(f"loss {loss.item():.6f}")
