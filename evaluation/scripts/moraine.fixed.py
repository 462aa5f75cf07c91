"""Ice-front calving: noisy crack growth along many flow lines."""
import gc
import os

import torch

STEPS = int(os.environ.get("STEPS", "2000"))
torch.manual_seed(21)


class Front(torch.nn.Module):
    def __init__(self, lines):
        super().__init__()
        self.tough = torch.nn.Parameter(torch.rand(lines) + 0.5)
        self.creep = torch.nn.Parameter(torch.rand(lines) * 0.1)

    def forward(self, crack, melt):
        open_ = torch.tanh(crack) * torch.exp(-self.tough * crack.abs())
        heal = torch.sigmoid(crack - melt) * self.creep
        return crack + 0.02 * (open_ + torch.sin(melt) - heal)


def tidy(history, limit):
    while len(history) > limit:
        history.pop(0)
    del history[:-limit]


front = Front(512)
advance = torch.compile(front)
melts = torch.randn(8, 512, 512)
crack = torch.rand(512, 512)
history = []

with torch.no_grad():
    for step in range(STEPS):
        crack = advance(crack, melts[step % 8])
        history.append(crack[0].mean())
        if step % 10 == 9:
            tidy(history, 200)
        if step % 200 == 0:
            print(f"{step:6d} crack {crack.mean().item():.5f}")

print("recent mean", torch.stack(history).mean().item())
