"""Macroscopic traffic on a road graph: vehicles of several classes move along directed links
between junctions, slowed by crowding; travel demand is redistributed at every step."""
import math
import os
import statistics
import time

import torch

JUNCTIONS, LINKS, CLASSES = 3000, 16000, 16
SUBSTEPS = 3


def set_up():
    torch.manual_seed(404)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)


def build_network(gen):
    xy = torch.rand(JUNCTIONS, 2, generator=gen)
    start = torch.randint(0, JUNCTIONS, (LINKS,), generator=gen)
    hop = torch.randint(1, 60, (LINKS,), generator=gen)
    end = (start + hop) % JUNCTIONS
    span = (xy[start] - xy[end]).norm(dim=1)
    share = torch.exp(-2.0 * span)
    total = torch.zeros(JUNCTIONS).index_add(0, start, share)
    return start, end, share / total[start].clamp(min=1e-6)


@torch.compile
def advance(density, start, end, share, capacity):
    """Sends a crowding-dependent part of every junction's vehicles down its links."""
    for _ in range(SUBSTEPS):
        crowd = density.sum(1, keepdim=True) / capacity
        release = 0.4 * density / (1.0 + crowd * crowd)
        moved = release[start] * share.unsqueeze(1)
        density = density.index_add(0, start, -moved)
        density = density.index_add(0, end, moved)
    return density


def main():
    steps = int(os.environ.get("STEPS", "240"))
    set_up()
    gen = torch.Generator().manual_seed(12)

    start, end, share = build_network(gen)
    capacity = 20.0 + 60.0 * torch.rand(JUNCTIONS, 1, generator=gen)
    density = torch.rand(JUNCTIONS, CLASSES, generator=gen)
    homes = torch.randint(0, JUNCTIONS, (400,), generator=gen)
    profile = torch.softmax(torch.randn(CLASSES, generator=gen), dim=0)

    jams, times = [], []
    with torch.no_grad():
        for step in range(steps):
            t0 = time.perf_counter()
            density = advance(density, start, end, share, capacity)
            rush = 0.5 + 0.5 * math.sin(2 * math.pi * step / 240.0)
            density[homes] = 0.98 * density[homes] + 0.3 * rush * profile
            times.append(time.perf_counter() - t0)
            if step % 48 == 47:
                jams.append(int((density.sum(1) > 0.5 * capacity[:, 0]).sum()))

    print("jammed junctions:", " ".join(str(j) for j in jams))
    print(f"vehicles {density.sum().item():.1f}, busiest {density.sum(1).max().item():.2f}, "
          f"{1e3 * statistics.median(times[steps // 2:]):.3f} ms/step")


if __name__ == "__main__":
    main()
