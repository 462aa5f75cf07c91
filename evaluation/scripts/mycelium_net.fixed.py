import os
import random

import numpy as np
import torch

torch.set_num_threads(1)

STEPS = int(os.environ.get("STEPS", "7500"))
NODES = 2000
EDGES = 24000
CHANNELS = 32


def setup(seed):
    """Make runs comparable between machines."""
    os.environ["PYTHONHASHSEED"] = str(seed)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def grow_network():
    """Hyphae: mostly short links plus a few long cords."""
    src = np.random.randint(0, NODES, EDGES)
    hop = np.random.geometric(0.05, EDGES) * np.random.choice([-1, 1], EDGES)
    far = np.random.rand(EDGES) < 0.03
    dst = np.where(far, np.random.randint(0, NODES, EDGES), (src + hop) % NODES)
    conduct = np.random.gamma(2.0, 0.5, EDGES).astype(np.float32)
    return (
        torch.from_numpy(src),
        torch.from_numpy(dst),
        torch.from_numpy(conduct)[:, None],
    )


def transport(level, src, dst, conduct):
    drop = level.index_select(0, src) - level.index_select(0, dst)
    flow = conduct * torch.tanh(drop)
    change = torch.zeros_like(level)
    change = change.index_add(0, dst, flow)
    change = change.index_add(0, src, -flow)
    return change


def react(level, uptake):
    return uptake * level * (1.0 - level) - 0.02 * level


def advance(level, src, dst, conduct, uptake, dt):
    change = transport(level, src, dst, conduct) + react(level, uptake)
    return (level + dt * change).clamp(0.0, 2.0)


class Colony:
    def __init__(self):
        self.src, self.dst, self.conduct = grow_network()
        self.level = torch.rand(NODES, CHANNELS) * 0.2
        self.uptake = torch.rand(CHANNELS) * 0.3
        self._advance = torch.compile(advance, fullgraph=True)

    def tick(self, dt=0.01):
        self.level = self._advance(
            self.level, self.src, self.dst, self.conduct, self.uptake, dt
        )

    def feed(self, where, amount):
        self.level[where] += amount


def summary(colony):
    lv = colony.level
    return {
        "mean": round(lv.mean().item(), 4),
        "spread": round(lv.std().item(), 4),
        "peak": round(lv.max().item(), 4),
    }


if __name__ == "__main__":
    setup(2024)
    colony = Colony()
    baits = [random.randrange(NODES) for _ in range(10)]
    for k in range(STEPS):
        colony.tick()
        if k % 200 == 0:
            colony.feed(baits[(k // 200) % len(baits)], 0.4)
        if k % 1500 == 0:
            print(k, summary(colony))
    print("end", summary(colony))
