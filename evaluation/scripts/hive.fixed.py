"""Bee-traffic counter at hive entrances: sound frames of varying length become a colony activity index."""
import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "9000"))
MICS, BANDS = 48, 64


class Swarm(nn.Module):
    """Band energies with a slow per-band reference and a soft threshold."""

    def __init__(self):
        super().__init__()
        self.floor = nn.Parameter(torch.full((BANDS, 1), 0.2))
        self.slope = nn.Parameter(torch.linspace(0.5, 2.0, BANDS)[:, None])

    def forward(self, frame):
        x = frame * self.slope
        x = (x - self.floor).clamp(min=0.0) + 0.1 * x.abs()
        x = x * x / (1.0 + x * x)
        x = x * (1.5 - 0.5 * x) + 0.02 * (x - 0.5).abs()
        y = (x - x.mean(-1, keepdim=True)).abs()
        return (x * y).mean((-1, -2)) + y.amax((-1, -2))


def recordings(seed):
    """Night frames are half as long as day frames; the first ones are a calibration burst."""
    g = torch.Generator().manual_seed(seed)
    burst = torch.rand(MICS, BANDS, 64, generator=g)
    day = [torch.rand(MICS, BANDS, 192, generator=g) for _ in range(4)]
    night = [torch.rand(MICS, BANDS, 160, generator=g) for _ in range(4)]
    yield burst
    k = 0
    while True:
        yield (day if (k // 40) % 2 == 0 else night)[k % 4]
        k += 1


class Index:
    def __init__(self):
        self.value = None

    def update(self, activity):
        self.value = activity if self.value is None else torch.lerp(self.value, activity, 0.05)

    def busiest(self):
        return int(self.value.argmax()), float(self.value.max())


def main():
    torch.manual_seed(0)
    swarm = Swarm().eval()
    listen = torch.compile(swarm, dynamic=None)
    feed = recordings(21)
    index = Index()
    every = max(1, STEPS // 20)

    with torch.no_grad():
        index.update(listen(next(feed)))
        for step in range(1, STEPS + 1):
            index.update(listen(next(feed)))
            if step % every == 0:
                mic, level = index.busiest()
                print(f"step {step}  busiest hive {mic}  level {level:.4f}")


if __name__ == "__main__":
    main()
