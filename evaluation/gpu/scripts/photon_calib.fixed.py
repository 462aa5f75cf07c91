"""Gain calibration of a 12-tile photomultiplier camera.

Flasher runs give, for every recorded pulse, the tile that saw it, the raw charge and
the arrival phase; the reference light level is known.  Gain, pedestal and saturation
of each tile are fitted jointly by gradient descent on a robust loss.
"""
import os
import argparse
import time

import numpy as np
import torch
from torch import nn

device = "cuda"


def simulate_flasher(pulses, tiles, seed):
    """Pulses in the order of arrival, i.e. tiles come in random order."""
    rng = np.random.default_rng(seed)
    true_gain = rng.normal(1.0, 0.12, tiles).astype(np.float32)
    true_pedestal = rng.normal(0.3, 0.05, tiles).astype(np.float32)

    tile = rng.integers(0, tiles, pulses, dtype=np.int64)
    light = rng.gamma(4.0, 0.5, pulses).astype(np.float32)
    phase = rng.uniform(-1.0, 1.0, pulses).astype(np.float32)
    charge = true_gain[tile] * light + true_pedestal[tile] + 0.04 * phase
    charge += 0.02 * rng.standard_normal(pulses, dtype=np.float32)

    columns = tuple(torch.from_numpy(c).to(device) for c in (tile, charge, phase, light))
    return columns, torch.from_numpy(true_gain)


class TileResponse(nn.Module):
    def __init__(self, tiles):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(tiles))
        self.pedestal = nn.Parameter(torch.zeros(tiles))
        self.walk = nn.Parameter(torch.zeros(()))

    def pick(self, table, tile):
        here = tile.unsqueeze(-1) == torch.arange(table.numel(), device=tile.device)
        return (here * table).sum(dim=-1)

    def forward(self, tile, charge, phase):
        gain = self.pick(self.gain, tile)
        pedestal = self.pick(self.pedestal, tile)
        return (charge - pedestal - self.walk * phase) / gain.clamp(min=0.2)


class RobustLoss(nn.Module):
    """Smooth Huber-like loss, relative to the photo-statistics of the pulse."""

    def __init__(self, scale=0.1):
        super().__init__()
        self.scale = scale

    def forward(self, estimate, light):
        sigma = self.scale * torch.sqrt(light + 0.05)
        pull = (estimate - light) / sigma
        return (torch.sqrt(1.0 + pull * pull) - 1.0).mean()


class Calibration(nn.Module):
    def __init__(self, tiles):
        super().__init__()
        self.response = TileResponse(tiles)
        self.loss = RobustLoss()

    def forward(self, tile, charge, phase, light):
        return self.loss(self.response(tile, charge, phase), light)


def fit(args):
    torch.manual_seed(args.seed)
    columns, true_gain = simulate_flasher(args.pulses, args.tiles, args.seed)
    model = Calibration(args.tiles).to(device)
    objective = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)

    clock = None
    for iteration in range(args.iterations):
        if iteration == 10:
            torch.cuda.synchronize()
            clock = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = objective(*columns)
        loss.backward()
        optimizer.step()
        if iteration % 250 == 0:
            error = (model.response.gain.detach().cpu() - true_gain).abs().max().item()
            print(f"iteration {iteration:5d}  loss {loss.item():.5f}  worst gain error {error:.4f}")

    torch.cuda.synchronize()
    each = 1e3 * (time.perf_counter() - clock) / (args.iterations - 10)
    error = (model.response.gain.detach().cpu() - true_gain).abs().max().item()
    print(f"done: worst gain error {error:.4f}, {each:.2f} ms per iteration")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pulses", type=int, default=12_000_000)
    parser.add_argument("--tiles", type=int, default=12)
    parser.add_argument("--iterations", type=int, default=int(os.environ.get("STEPS", "2000")))
    parser.add_argument("--seed", type=int, default=17)
    fit(parser.parse_args())
