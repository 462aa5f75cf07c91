"""Hand-pose sequences to glosses, with augmentation prepared in a worker thread."""
import argparse
import math
import queue
import random
import threading

import torch
from torch import nn


def augment(frames, rng):
    """Rotates and jitters one clip of 21 joints."""
    angle = rng.uniform(-0.3, 0.3)
    c, s = math.cos(angle), math.sin(angle)
    out = []
    for frame in frames:
        out.append([(c * x - s * y + rng.gauss(0, 0.01), s * x + c * y + rng.gauss(0, 0.01)) for x, y in frame])
    return out


def fast(clips, g):
    a = torch.rand(len(clips), 1, 1, generator=g) * 0.6 - 0.3
    x, y = clips.unbind(-1)
    z = torch.stack([a.cos() * x - a.sin() * y, a.sin() * x + a.cos() * y], -1)
    return z + 0.01 * torch.randn(z.shape, generator=g)


class Feeder(threading.Thread):
    def __init__(self, clips, batch, seed):
        super().__init__(daemon=True)
        self.clips, self.batch = clips, batch
        self.rng = random.Random(seed); self.t = torch.tensor(clips); self.g = torch.Generator().manual_seed(1)
        self.ready = queue.Queue(maxsize=2)

    def run(self):
        while True:
            picks = [self.rng.randrange(len(self.clips)) for _ in range(self.batch)]
            data = fast(self.t[picks], self.g)
            self.ready.put((data, torch.tensor([i % 10 for i in picks])))


class Glosser(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(42, 64)
        self.time = nn.Conv1d(64, 64, 3, padding=1)
        self.out = nn.Linear(64, 10)

    def forward(self, clip):
        h = torch.tanh(self.lift(clip.flatten(2)))
        h = nn.functional.gelu(self.time(h.transpose(1, 2)))
        return self.out(h.mean(-1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=1000)
    args = ap.parse_args()
    torch.manual_seed(4)
    rng = random.Random(4)
    clips = [[[(rng.random(), rng.random()) for _ in range(21)] for _ in range(16)] for _ in range(60)]
    feeder = Feeder(clips, batch=24, seed=5)
    feeder.start()
    model = Glosser()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    predict = torch.compile(model)
    for step in range(args.steps):
        clip, gloss = feeder.ready.get()
        loss = nn.functional.cross_entropy(predict(clip), gloss)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 50 == 0:
            print(f"step {step:5d} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
