"""Sleep staging from two-channel EEG: a small temporal convolution network.

Trains on synthetic nights and reports the compute spent next to the accuracy,
as required by the energy statement of the lab.
"""
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

STAGES = 5
RATE = 32
EPOCH_S = 10
BATCH = 10


class GatedBlock(nn.Module):
    def __init__(self, width: int, dilation: int):
        super().__init__()
        self.filter = nn.Conv1d(width, 2 * width, 3, padding=dilation, dilation=dilation)
        self.mix = nn.Conv1d(width, width, 1)
        self.scale = nn.Parameter(torch.full((width, 1), 0.1))

    def forward(self, x):
        a, b = self.filter(x).chunk(2, dim=1)
        h = torch.tanh(a) * torch.sigmoid(b)
        h = F.softplus(self.mix(h)) - math.log(2.0)
        return x + self.scale * h


class SleepNet(nn.Module):
    def __init__(self, width: int = 16):
        super().__init__()
        self.stem = nn.Conv1d(2, width, 7, stride=2, padding=3)
        self.blocks = nn.ModuleList([GatedBlock(width, 2 ** i) for i in range(3)])
        self.head = nn.Linear(2 * width, STAGES)

    def forward(self, eeg):
        x = eeg - eeg.mean(-1, keepdim=True)
        x = torch.asinh(x / (x.std(-1, keepdim=True) + 1e-5))
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        pooled = torch.cat([x.mean(-1), x.square().mean(-1).sqrt()], dim=-1)
        return self.head(pooled)


class SyntheticNights:
    BANDS = (1.5, 5.0, 9.0, 12.5, 2.5)

    def __init__(self, seed=3):
        self.gen = torch.Generator().manual_seed(seed)
        self.t = torch.arange(RATE * EPOCH_S) / RATE

    def sample(self, n):
        stage = torch.randint(0, STAGES, (n,), generator=self.gen)
        freq = torch.tensor(self.BANDS)[stage][:, None, None]
        phase = 6.28 * torch.rand(n, 2, 1, generator=self.gen)
        eeg = torch.sin(2 * math.pi * freq * self.t + phase)
        return eeg + 0.8 * torch.randn(n, 2, self.t.numel(), generator=self.gen), stage


def main():
    steps = int(os.environ.get("STEPS", "240"))
    torch.manual_seed(0)
    nights = SyntheticNights()
    data = [nights.sample(BATCH) for _ in range(20)]
    model = SleepNet()
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    right = 0
    meter = FlopCounterMode(display=False)
    with meter:
        F.cross_entropy(model(data[0][0]), data[0][1]).backward()
    for i in range(steps):
        eeg, stage = data[i % len(data)]
        logits = compiled(eeg)
        loss = F.cross_entropy(logits, stage)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i >= steps - 20:
            right += int((logits.argmax(-1) == stage).sum())

    gflop = steps * meter.get_total_flops() / 1e9
    print(f"steps {steps}  loss {loss.item():.4f}  accuracy {right / (BATCH * min(20, steps)):.3f}  "
          f"compute {gflop:.2f} GFLOP")


if __name__ == "__main__":
    main()
