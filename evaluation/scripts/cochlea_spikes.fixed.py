"""Train a small spiking read-out on a synthetic cochleagram.

Channels of a cochlear filter bank drive a layer of leaky integrate-and-fire units
with adaptive thresholds.  The hard spike is replaced by a steep sigmoid so that the
whole thing can be trained by ordinary back-propagation through time.
"""
import os
import time

import torch
from torch import nn

torch.set_num_threads(1)


class CochleaSet:
    """Words are bursts in word-specific channels at word-specific times."""

    def __init__(self, channels, frames, words, seed=21):
        self.g = torch.Generator().manual_seed(seed)
        self.channels, self.frames, self.words = channels, frames, words
        self.centre = torch.rand(words, 3, generator=self.g) * channels
        self.onset = torch.rand(words, 3, generator=self.g) * frames

    def batch(self, size):
        y = torch.randint(self.words, (size,), generator=self.g)
        c = torch.arange(self.channels).view(1, 1, 1, -1)
        t = torch.arange(self.frames).view(1, 1, -1, 1)
        centre = self.centre[y].view(size, 3, 1, 1)
        onset = self.onset[y].view(size, 3, 1, 1)
        burst = torch.exp(-((c - centre) / 3.0) ** 2 - ((t - onset) / 5.0) ** 2).sum(1)
        noise = 0.15 * torch.rand(size, self.frames, self.channels, generator=self.g)
        return burst + noise, y


class AdaptiveLIF(nn.Module):
    def __init__(self, units, steepness=6.0):
        super().__init__()
        self.leak = nn.Parameter(torch.full((units,), 2.0))
        self.recover = nn.Parameter(torch.full((units,), 3.0))
        self.steepness = steepness

    def forward(self, current):
        leak = torch.sigmoid(self.leak)
        recover = torch.sigmoid(self.recover)
        v = torch.zeros_like(current[:, 0])
        fatigue = torch.zeros_like(v)
        rate = torch.zeros_like(v)
        for current_t in current.unbind(1):
            v = leak * v + current_t
            spike = torch.sigmoid(self.steepness * (v - 1.0 - fatigue))
            v = v - spike * (1.0 + fatigue)
            fatigue = recover * fatigue + 0.2 * spike
            rate = rate + spike
        return rate / current.shape[1]


class SpikingReader(nn.Module):
    def __init__(self, channels, units, words):
        super().__init__()
        self.drive = nn.Linear(channels, units)
        self.lif = AdaptiveLIF(units)
        self.readout = nn.Linear(units, words)

    def forward(self, cochleagram):
        return self.readout(self.lif(self.drive(cochleagram)))


def train(model, step_model, data, steps, batch_size=64):
    loss_fn = nn.CrossEntropyLoss()
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    pool = [data.batch(batch_size) for _ in range(16)]
    running = None
    for n in range(steps):
        x, y = pool[n % len(pool)]
        opt.zero_grad(set_to_none=True)
        loss = loss_fn(step_model(x), y)
        loss.backward()
        opt.step()
        value = float(loss.detach())
        running = value if running is None else 0.98 * running + 0.02 * value
        if n % 300 == 0:
            print(f"step {n:5d}  loss {running:.4f}")
    return running


def main(steps=int(os.environ.get("STEPS", "1100"))):
    torch.manual_seed(0)
    data = CochleaSet(channels=64, frames=88, words=10)
    model = SpikingReader(channels=64, units=192, words=10)
    compiled = torch.compile(model)
    begin = time.perf_counter()
    final = train(model, compiled, data, steps)
    spent = time.perf_counter() - begin
    with torch.no_grad():
        x, y = data.batch(256)
        accuracy = float((model(x).argmax(-1) == y).float().mean())
    print(f"loss {final:.4f}  accuracy {accuracy:.3f}  {1e3 * spent / max(steps, 1):.2f} ms a step")


if __name__ == "__main__":
    main()
