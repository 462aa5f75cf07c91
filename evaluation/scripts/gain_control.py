"""Levels the loudness of audio frames with a small network and a running peak."""
import os

import torch
from torch import nn


class Leveller(nn.Module):
    def __init__(self, bands=256, hidden=512):
        super().__init__()
        self.encode = nn.Linear(bands, hidden)
        self.decode = nn.Linear(hidden, bands)
        self.peak = 1.0

    def loudest(self, frame):
        return frame.abs().amax().item()

    def forward(self, frame):
        mask = torch.sigmoid(self.decode(torch.tanh(self.encode(frame))))
        loud = self.loudest(frame)
        shaped = torch.tanh(frame * mask) * (1.0 + 0.1 * torch.sin(frame))
        return shaped / max(loud, 1e-3)


@torch.inference_mode()
def process(frames, leveller):
    total = 0.0
    for number in range(frames):
        frame = torch.randn(128, 256)
        out = leveller(frame)
        if number % 5000 == 0:
            total += float(out.sum())
    return total


if __name__ == "__main__":
    torch.manual_seed(1)
    model = Leveller().eval()
    print(process(int(os.environ.get("FRAMES", "40000")), torch.compile(model)))
