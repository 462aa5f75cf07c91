import argparse
import itertools

import torch
import torch.nn as nn

FORMATS = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8,
    torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool,
]


class Calibrate(nn.Module):
    def __init__(self, channels=256):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(channels) + 0.5)
        self.offset = nn.Parameter(torch.randn(channels))

    def forward(self, raw):
        x = raw.float() * self.gain + self.offset
        x = torch.tanh(x) + torch.sin(x) * torch.exp(-x.abs())
        return torch.sigmoid(x) * torch.cos(x) + torch.erf(x)


class Recorder:
    """Replays one recording in every sample format that the devices send."""

    def __init__(self, rows=384):
        base = (torch.rand(rows, 256) * 50).round()
        self.recordings = [base.to(kind) for kind in FORMATS]

    def __iter__(self):
        return itertools.cycle(self.recordings)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=60000)
    args = parser.parse_args()
    torch.manual_seed(0)
    calibrate = torch.compile(Calibrate().eval())
    with torch.no_grad():
        for raw in itertools.islice(Recorder(), args.samples):
            y = calibrate(raw)
    print(y.mean().item())


if __name__ == "__main__":
    main()
