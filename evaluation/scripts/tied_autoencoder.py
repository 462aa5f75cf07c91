"""Tied-weight sparse autoencoder over activations, with periodic validation and revival."""
import time
import warnings

import torch
from torch import nn

warnings.filterwarnings("ignore")


class SoftShrinkage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.theta = nn.Parameter(torch.full((width,), 0.05))
        self.slope = nn.Parameter(torch.full((width,), 8.0))

    def forward(self, z):
        up = nn.functional.softplus(self.slope * (z - self.theta))
        dn = nn.functional.softplus(self.slope * (-z - self.theta))
        return (up - dn) / self.slope


class TiedSAE(nn.Module):
    def __init__(self, d=48, width=640):
        super().__init__()
        self.encoder = nn.Linear(d, width)
        self.decoder = nn.Linear(width, d)
        self.decoder.weight = nn.Parameter(self.encoder.weight.t().contiguous())
        self.skip = self.encoder
        self.shrink = SoftShrinkage(width)

    def forward(self, x):
        z = self.shrink(self.encoder(x))
        if self.training:
            z = z * (1 + 0.05 * torch.tanh(z.detach()))
        sparsity = torch.log1p(z.square() * 50).mean()
        return self.decoder(z), sparsity, z


def objective(model, x):
    try:
        rec, sparsity, z = model(x)
    except RuntimeError:
        print("bad batch", tuple(x.shape))
        raise
    return (rec - x).square().mean() + 0.02 * sparsity, z


def note(tag, value):
    print(f"{tag}: {value:.5f}", flush=True)


def main():
    torch.manual_seed(2)
    model = TiedSAE()
    objective_c = torch.compile(objective)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    basis = torch.randn(20, 48)
    draws = [torch.randn(1536, 20).relu() @ basis * 0.3 for _ in range(10)]
    held_out = torch.randn(1536, 20).relu() @ basis * 0.3

    def validate():
        model.eval()
        with torch.no_grad():
            v, _ = objective_c(model, held_out)
        model.train()
        return v.item()

    for x in draws[:3]:
        objective_c(model, x)[0].backward()
        opt.step()
        opt.zero_grad()
    note("start", validate())

    lap = []
    for k in range(200):
        x = draws[k % len(draws)]
        t = time.perf_counter()
        loss, z = objective_c(model, x)
        loss.backward()
        opt.step()
        opt.zero_grad()
        lap.append(time.perf_counter() - t)
        if k % 50 == 49:
            note(f"valid {k + 1}", validate())
    lap.sort()
    print(f"step {lap[len(lap) // 2] * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
