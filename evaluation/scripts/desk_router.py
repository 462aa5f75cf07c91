"""Routing service: turns sparse ticket fingerprints into queue scores."""
import os
import threading
import time
from collections import OrderedDict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(14)

STEPS = int(os.environ.get("STEPS", "8000"))
BATCH = 96
WIDTH = 320
QUEUES = OrderedDict(billing=12, network=20, hardware=16, abuse=6)


class Layer(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 3 * width)
        self.down = nn.Linear(3 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Router(nn.Module):
    def __init__(self, depth: int = 3):
        super().__init__()
        self.stem = nn.Linear(WIDTH, WIDTH)
        self.layers = nn.ModuleList(Layer(WIDTH) for _ in range(depth))
        self.heads = nn.ModuleDict({k: nn.Linear(WIDTH, n) for k, n in QUEUES.items()})

    def forward(self, x):
        h = self.stem(x)
        for layer in self.layers:
            h = layer(h)
        return {name: head(h).softmax(-1) for name, head in self.heads.items()}


class Intake:
    """Pre-tokenised batches as numpy blocks, filled by a small thread."""

    def __init__(self, seed: int, blocks: int = 24):
        self.rng = np.random.default_rng(seed)
        self.blocks = []
        t = threading.Thread(target=self._fill, args=(blocks,))
        t.start()
        t.join()

    def _fill(self, blocks: int) -> None:
        for _ in range(blocks):
            dense = self.rng.standard_normal((BATCH, WIDTH)).astype(np.float32)
            mask = self.rng.random((BATCH, WIDTH)) < 0.2
            self.blocks.append(dense * mask)

    def batch(self, k: int) -> torch.Tensor:
        return torch.from_numpy(self.blocks[k % len(self.blocks)])


def main():
    model = Router().eval()
    serve = torch.compile(model)
    intake = Intake(5)
    load = {k: torch.zeros(n) for k, n in QUEUES.items()}
    t0 = time.time()
    with torch.inference_mode():
        for step in range(STEPS):
            scores = serve(intake.batch(step))
            for name, s in scores.items():
                load[name].mul_(0.99).add_(s.mean(0), alpha=0.01)
            if step % 2000 == 0:
                print(step, {k: int(v.argmax()) for k, v in load.items()})
    top = {k: round(v.max().item(), 5) for k, v in load.items()}
    print(top, f"{time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
