"""Tide-gauge forecaster; keeps a running account of the arithmetic spent per epoch."""
import os
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

WINDOW, HORIZON, BATCH = 128, 16, 48
STEPS = int(os.environ.get("STEPS", "900"))


class GatedBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mix = nn.Linear(dim, 2 * dim)
        self.decay = nn.Parameter(torch.zeros(dim))

    def forward(self, h):
        a, b = self.mix(self.norm(h)).chunk(2, -1)
        gate = torch.sigmoid(a + self.decay) * torch.tanh(b)
        return h + gate * torch.exp(-nn.functional.softplus(a - b))


class TideNet(nn.Module):
    def __init__(self, dim=96, depth=4):
        super().__init__()
        self.embed = nn.Linear(8, dim)
        self.blocks = nn.ModuleList(GatedBlock(dim) for _ in range(depth))
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        h = self.embed(x.unfold(1, 8, 8))
        for block in self.blocks:
            h = block(h)
        return self.out(h).squeeze(-1)


def sample(gen):
    t = torch.arange(WINDOW + HORIZON) / 24.0
    phase = 6.28 * torch.rand(BATCH, 3, 1, generator=gen)
    period = torch.tensor([0.5175, 0.5, 1.0758]).view(1, 3, 1)
    amp = torch.tensor([1.2, 0.5, 0.3]).view(1, 3, 1)
    level = (amp * torch.sin(6.2832 * t / period + phase)).sum(1)
    return level[:, :WINDOW], level[:, WINDOW:]


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(7)
    net = TideNet()
    forecaster = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3)
    data = [sample(gen) for _ in range(40)]
    counter = FlopCounterMode(display=False)
    with counter:
        for step in range(STEPS):
            x, y = data[step % len(data)]
            pred = forecaster(x)
            loss = nn.functional.huber_loss(pred, y)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            if step % 45 == 0:
                print(f"step {step:5d}  huber {loss.item():.4f}  lr {opt.param_groups[0]['lr']:.1e}")
    total = counter.get_total_flops()
    print(f"done: {total / STEPS / 1e6:.1f} MFLOP per step")


if __name__ == "__main__":
    main()
