"""Trains a delay predictor for ferries while a side thread watches the timetable."""
import argparse
import threading

import torch
from torch import nn

DEVICE = "cuda"


class TimetableWatch(threading.Thread):
    """Keeps a rolling checksum of the published timetable."""

    def __init__(self, rows):
        super().__init__(daemon=True)
        self.rows = rows
        self.checksum = 0
        self.rounds = 0
        self.stopping = threading.Event()

    def run(self):
        while not self.stopping.is_set():
            total = 0
            for row in self.rows:
                for ch in row:
                    total = (total * 31 + ord(ch)) % 1_000_003
            self.checksum = total
            self.rounds += 1


class DelayNet(nn.Module):
    def __init__(self, inp=48, width=256, depth=4):
        super().__init__()
        self.inp = nn.Linear(inp, width)
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = self.inp(x)
        for block in self.blocks:
            h = h + nn.functional.silu(block(h)) * torch.sigmoid(h)
        return self.out(h).squeeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=5000)
    args = ap.parse_args()
    torch.manual_seed(10)
    watch = TimetableWatch([f"{h:02d}:{m:02d} pier {m % 7}" for h in range(24) for m in range(60)])
    watch.start()
    model = DelayNet().to(DEVICE)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    predict = torch.compile(model)
    crossings = torch.randn(8192, 48, device=DEVICE)
    delay = torch.tanh(crossings[:, :4].sum(1))
    for step in range(args.steps):
        lo = (step * 512) % 8192
        loss = (predict(crossings[lo:lo + 512]) - delay[lo:lo + 512]).abs().mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if step % 1000 == 0:
            print(f"step {step:5d} loss {loss.item():.4f} timetable {watch.checksum}")
    watch.stopping.set()


if __name__ == "__main__":
    main()
