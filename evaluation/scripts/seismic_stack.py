"""Phase picker for seismograms: a deep residual stack, every block compiled on its own."""
import os
import torch
from torch import nn

SAMPLES, WIDTH, DEPTH, BATCH = 160, 32, 20, 12
STEPS = int(os.environ.get("STEPS", "540"))


class Residual(nn.Module):
    def __init__(self, width, index):
        super().__init__()
        self.index = index
        self.up = nn.Linear(width, 2 * width)
        self.gain = nn.Parameter(torch.ones(width))
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, h):
        mean = h.mean(-1, keepdim=True)
        var = (h - mean).square().mean(-1, keepdim=True)
        z = (h - mean) * torch.rsqrt(var + 1e-5) * self.gain + self.shift
        a, b = self.up(z).chunk(2, -1)
        lagged = torch.cat((b[:, :1], b[:, :-1]), 1)
        gate = torch.sigmoid(a) * torch.tanh(b - 0.5 * lagged) + 0.1 * torch.sin(a * lagged)
        return h + gate / (1 + self.index) ** 0.5


class Picker(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(3, WIDTH)
        self.stack = nn.ModuleList(Residual(WIDTH, i) for i in range(DEPTH))
        self.out = nn.Linear(WIDTH, 2)

    def forward(self, wave):
        h = self.inp(wave)
        for block in self.stack:
            h = block(h)
        return self.out(h)


def records(gen):
    t = torch.arange(SAMPLES).float()
    onset = torch.randint(20, 80, (BATCH, 1), generator=gen)
    delay = torch.randint(15, 60, (BATCH, 1), generator=gen)
    p = (t > onset) * torch.exp(-(t - onset).clamp_min(0) / 25)
    s = (t > onset + delay) * torch.exp(-(t - onset - delay).clamp_min(0) / 40)
    pol = torch.randn(BATCH, 1, 3, generator=gen)
    wave = (p * torch.sin(0.9 * t))[..., None] * pol + 2 * (s * torch.sin(0.5 * t))[..., None] * pol.flip(-1)
    wave = wave + 0.1 * torch.randn(BATCH, SAMPLES, 3, generator=gen)
    return wave, torch.stack((p > 0, s > 0), -1).float()


def main():
    torch.manual_seed(13)
    gen = torch.Generator().manual_seed(31)
    picker = Picker()
    for block in picker.stack:
        block.compile()
    opt = torch.optim.AdamW(picker.parameters(), lr=1e-3, fused=True)
    data = [records(gen) for _ in range(24)]
    for step in range(STEPS):
        wave, target = data[step % len(data)]
        logits = picker(wave)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 27 == 0:
            acc = ((logits > 0) == (target > 0.5)).float().mean()
            print(f"step {step:4d}  bce {loss.item():.4f}  accuracy {acc.item():.3f}")


if __name__ == "__main__":
    main()
