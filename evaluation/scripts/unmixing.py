"""Hyperspectral unmixing autoencoder; sparsity of the abundance maps comes from taps on two layers."""
import os
import torch
from torch import nn

SPECTRUM, MEMBERS, PIXELS = 160, 12, 1024
STEPS = int(os.environ.get("STEPS", "3500"))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.smooth = nn.Linear(SPECTRUM, 32)
        self.mid = nn.Linear(32, 32)
        self.abundance = nn.Linear(32, MEMBERS)

    def forward(self, x):
        h = nn.functional.mish(self.smooth(x))
        h = nn.functional.mish(self.mid(h))
        return nn.functional.softplus(self.abundance(h))


class Unmixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.spectra = nn.Parameter(torch.rand(MEMBERS, SPECTRUM))
        self.bend = nn.Parameter(torch.zeros(SPECTRUM))
        self.haze = nn.Parameter(torch.full((SPECTRUM,), 0.05))

    def forward(self, x):
        a = self.encoder(x)
        linear = a @ torch.sigmoid(self.spectra)
        curved = linear + self.bend * linear * torch.tanh(linear)
        return curved * torch.exp(-self.haze.abs() * curved) + self.haze * torch.sigmoid(4.0 * curved - 2.0)


class Taps:
    def __init__(self):
        self.seen = {}

    def attach(self, name, module):
        def keep(_module, _inputs, output):
            self.seen[name] = output
        module.register_forward_hook(keep)

    def penalty(self, weight):
        cost = sum(weight * v.abs().mean() for v in self.seen.values())
        self.seen.clear()
        return cost


def scene(gen):
    wave = torch.linspace(0, 1, SPECTRUM)
    centers = torch.rand(MEMBERS, 1, generator=gen)
    pure = torch.exp(-((wave - centers) / 0.12) ** 2) + 0.1
    mix = torch.rand(8192, MEMBERS, generator=gen) ** 6
    return mix @ pure + 0.01 * torch.randn(8192, SPECTRUM, generator=gen)


def main():
    torch.manual_seed(21)
    gen = torch.Generator().manual_seed(8)
    pixels = scene(gen)
    model = Unmixer()
    model.compile()
    with torch.no_grad():
        start = nn.functional.mse_loss(model(pixels[:PIXELS]), pixels[:PIXELS])
    loss = nn.functional.mse_loss(model(pixels[:PIXELS]), pixels[:PIXELS])
    print(f"before training {start.item():.4f} / {loss.item():.4f}")
    taps = Taps()
    taps.attach("abundance", model.encoder)
    taps.attach("mid", model.encoder.mid)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(STEPS):
        rows = torch.randint(0, len(pixels), (PIXELS,), generator=gen)
        batch = pixels[rows]
        rebuilt = model(batch)
        fit = nn.functional.mse_loss(rebuilt, batch)
        loss = fit + taps.penalty(0.05)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 175 == 0:
            print(f"step {step:5d}  fit {fit.item():.5f}  objective {loss.item():.5f}")
    with torch.no_grad():
        maps = model.encoder(pixels[:2048])
        print(f"mean abundance {maps.mean().item():.4f}, share below 0.05: {(maps < 0.05).float().mean().item():.3f}")


if __name__ == "__main__":
    main()
