"""Smooths whale tracks with a recurrent filter; averages the last few estimates."""
import argparse
from collections import deque

import torch
from torch import nn

DEVICE = "cuda"


class Filter(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.gain = nn.Linear(width + 6, width)
        self.move = nn.Linear(width, width)
        self.read = nn.Linear(width, 6)

    def forward(self, state, ping):
        mixed = torch.tanh(self.gain(torch.cat([state, ping], -1)))
        state = 0.9 * state + 0.1 * torch.tanh(self.move(mixed))
        return state, self.read(state)


class Smoother:
    def __init__(self, lag):
        self.recent = deque(maxlen=lag)

    def push(self, estimate):
        self.recent.append(estimate)
        return torch.stack(tuple(self.recent)).mean(0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=10000)
    args = ap.parse_args()
    torch.manual_seed(7)
    step_filter = torch.compile(Filter().to(DEVICE).eval(), mode="reduce-overhead")
    pings = torch.randn(50, 256, 6, device=DEVICE)
    state = torch.zeros(256, 128, device=DEVICE)
    smoother = Smoother(lag=5)
    with torch.no_grad():
        for step in range(args.steps):
            new_state, estimate = step_filter(state, pings[step % 50])
            state = new_state.clone()
            track = smoother.push(estimate)
            if step % 2000 == 0:
                print(f"ping {step:6d} spread {track.std().item():.5f}")


if __name__ == "__main__":
    main()
