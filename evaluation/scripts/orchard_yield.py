"""Crate yield per tree from drone spectra: a residual regressor trained on a rolling harvest."""
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

BANDS = 192
WIDTH = 320


class SpectralBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, width)
        self.down = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        h = self.norm(x)
        h = F.silu(self.up(h)) * torch.tanh(h)
        return x + self.scale * self.down(h)


class YieldNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(BANDS, WIDTH)
        self.blocks = nn.ModuleList([SpectralBlock(WIDTH) for _ in range(4)])
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, spectra):
        h = self.stem(spectra)
        for block in self.blocks:
            h = block(h)
        mu, log_var = self.head(h).unbind(-1)
        return mu, log_var.clamp(-6, 6)


def harvest(generator):
    spectra = torch.randn(32, BANDS, generator=generator)
    crates = spectra[:, :16].sum(1).tanh() * 3 + 0.3 * torch.randn(32, generator=generator)
    return spectra, crates


def nll(mu, log_var, target):
    return 0.5 * (log_var + (target - mu) ** 2 / log_var.exp()).mean()


def main():
    model = YieldNet()
    net = torch.compile(model, options={"nan_asserts": True})
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=True)
    g = torch.Generator().manual_seed(0)
    running = 0.0
    t0 = time.time()
    for step in range(int(os.environ.get("STEPS", "600"))):
        spectra, crates = harvest(g)
        mu, log_var = net(spectra)
        loss = nll(mu, log_var, crates)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        running = 0.98 * running + 0.02 * loss.item()
        if step % 60 == 59:
            print(f"step {step + 1}  nll {running:.4f}  {1e3 * (time.time() - t0) / (step + 1):.1f} ms/step")


if __name__ == "__main__":
    main()
