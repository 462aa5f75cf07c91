"""Arrival-time forecasts for a pilot station: a wide gated cell rolled over the last readings of each ship."""
import os
import time
import torch
import torch.nn as nn

torch.manual_seed(4)

SHIPS = 4
READINGS = 12
FEATURES = 256
HIDDEN = 768


class GatedCell(nn.Module):
    def __init__(self, n_in, n_hidden):
        super().__init__()
        self.from_input = nn.Linear(n_in, 3 * n_hidden)
        self.from_state = nn.Linear(n_hidden, 3 * n_hidden)

    def forward(self, x, h):
        xr, xz, xn = self.from_input(x).chunk(3, dim=-1)
        hr, hz, hn = self.from_state(h).chunk(3, dim=-1)
        r = torch.sigmoid(xr + hr)
        z = torch.sigmoid(xz + hz)
        n = torch.tanh(xn + r * hn)
        return (1 - z) * n + z * h


class ArrivalModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = GatedCell(FEATURES, HIDDEN)
        self.minutes = nn.Linear(HIDDEN, 1)

    def forward(self, readings):
        h = readings.new_zeros(readings.shape[0], HIDDEN)
        for t in range(readings.shape[1]):
            h = self.cell(readings[:, t], h)
        return self.minutes(h)


def ship_batch(step):
    g = torch.Generator().manual_seed(step)
    return torch.randn(SHIPS, READINGS, FEATURES, generator=g)


def main():
    model = ArrivalModel().eval()
    model.cell = torch.compile(model.cell)
    total = 0.0
    start = time.time()
    for step in range(int(os.environ.get("STEPS", "1500"))):
        readings = ship_batch(step)
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            eta = model(readings)
        total += eta.float().mean().item()
        if step % 150 == 149:
            print(f"{step + 1:5d} batches  mean eta {total / (step + 1):+.4f}  {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
