"""Live picture of ship traffic from AIS position reports.

One row a vessel.  Each tick brings a batch of reports from the receivers; the
vessels that were heard are corrected with an alpha-beta filter and their columns
in the table are updated in place.
"""
import os
import time

import torch

torch.set_num_threads(1)

EAST, NORTH, VE, VN, LAST_SEEN, QUALITY, COUNT, SPARE = range(8)
COLUMNS = 8


def make_fleet(n, seed=5):
    g = torch.Generator().manual_seed(seed)
    fleet = torch.zeros(n, COLUMNS)
    fleet[:, EAST] = torch.rand(n, generator=g) * 400.0
    fleet[:, NORTH] = torch.rand(n, generator=g) * 250.0
    heading = torch.rand(n, generator=g) * 6.2831853
    speed = torch.rand(n, generator=g) * 0.3
    fleet[:, VE] = speed * torch.sin(heading)
    fleet[:, VN] = speed * torch.cos(heading)
    fleet[:, QUALITY] = 0.5
    return fleet


def make_batches(fleet, per_tick, ticks, seed=6):
    g = torch.Generator().manual_seed(seed)
    n = fleet.shape[0]
    for _ in range(ticks):
        who = torch.randperm(n, generator=g)[:per_tick]
        fix = fleet[who, :2] + 0.05 * torch.randn(per_tick, 2, generator=g)
        trust = 0.4 + 0.6 * torch.rand(per_tick, generator=g)
        yield who, fix, trust


def assimilate(fleet, who, fix, trust, now):
    """Alpha-beta correction of the vessels that reported at time `now`."""
    known = fleet[who]
    age = (now - known[:, LAST_SEEN]).clamp_min(1e-2)
    alpha = 0.35 + 0.5 * trust
    beta = 0.12 * trust * trust

    east = known[:, EAST] + known[:, VE] * age
    north = known[:, NORTH] + known[:, VN] * age
    miss_e = fix[:, 0] - east
    miss_n = fix[:, 1] - north
    miss = torch.sqrt(miss_e * miss_e + miss_n * miss_n)
    gate = torch.sigmoid(4.0 - miss)

    fleet[who] = torch.stack((
        east + alpha * gate * miss_e,
        north + alpha * gate * miss_n,
        known[:, VE] + beta * gate * miss_e / age,
        known[:, VN] + beta * gate * miss_n / age,
        now.expand(who.shape[0]),
        0.9 * known[:, QUALITY] + 0.1 * gate,
        known[:, COUNT] + 1.0,
        known[:, SPARE],
    ), dim=1)
    return miss.mean(), gate.mean()


class Picture:
    def __init__(self, n):
        self.fleet = make_fleet(n)
        self.update = torch.compile(assimilate)
        self.clock = torch.zeros(())

    def tick(self, who, fix, trust):
        self.clock = self.clock + 0.1
        return self.update(self.fleet, who, fix, trust, self.clock)

    def summary(self):
        heard = self.fleet[:, COUNT] > 0
        quality = self.fleet[heard, QUALITY].mean()
        return int(heard.sum()), float(quality)


def main(vessels=300_000, per_tick=20_000, ticks=int(os.environ.get("STEPS", "6000"))):
    torch.manual_seed(0)
    picture = Picture(vessels)
    stored = list(make_batches(picture.fleet, per_tick, 24))
    start = time.perf_counter()
    with torch.no_grad():
        for n in range(ticks):
            miss, gate = picture.tick(*stored[n % len(stored)])
            if n % 1000 == 0:
                heard, quality = picture.summary()
                print(f"tick {n:5d}  heard {heard:6d}  miss {float(miss):.4f}  gate {float(gate):.3f}  quality {quality:.3f}")
    spent = time.perf_counter() - start
    print(f"checksum {float(picture.fleet.double().sum()):.4f}")
    print(f"{ticks} ticks in {spent:.1f} s ({1e3 * spent / ticks:.2f} ms each)")


if __name__ == "__main__":
    main()
