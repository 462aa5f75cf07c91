"""Forecast tomorrow's peak load of a substation from weather and calendar features."""
import os
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(2)

STEPS = int(os.environ.get("STEPS", "4000"))
BATCH = 4096
FEATURES = 24
WIDTH = 32
BLOCKS = 3


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        scale = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6)
        return x * scale * self.weight


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = RMSNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(width, width)

    def forward(self, x):
        value, gate = self.up(self.norm(x)).chunk(2, dim=-1)
        return x + self.down(F.gelu(gate, approximate="tanh") * value)


class LoadModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(FEATURES, WIDTH)
        self.blocks = nn.ModuleList(Block(WIDTH) for _ in range(BLOCKS))
        self.norm = RMSNorm(WIDTH)
        self.out = nn.Linear(WIDTH, 4)

    def forward(self, x, y):
        h = self.inp(x)
        for block in self.blocks:
            h = block(h)
        mean, log_scale = self.out(self.norm(h)).chunk(2, dim=-1)
        log_scale = 3.0 * torch.tanh(log_scale / 3.0)
        z = (y - mean) * torch.exp(-log_scale)
        return (torch.log1p(z.square() / 4.0) * 2.5 + log_scale).mean()


def main():
    x = torch.randn(32, BATCH, FEATURES)
    y = torch.stack([x[..., 0] * x[..., 1], x[..., 2].abs()], dim=-1)
    y = y + 0.1 * torch.randn_like(y)
    net = LoadModel()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    model = torch.compile(net)

    for step in range(STEPS):
        loss = model(x[step % 32], y[step % 32])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 250 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
