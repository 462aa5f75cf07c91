import argparse

import torch
import torch.nn as nn


class Memory(nn.Module):
    """A modern Hopfield layer: one look-up is an attention over stored patterns."""

    def __init__(self, patterns=256, width=128, sharpness=4.0):
        super().__init__()
        self.register_buffer("stored", torch.sign(torch.randn(patterns, width)))
        self.sharpness = sharpness

    def forward(self, state):
        for _ in range(3):
            weight = torch.softmax(self.sharpness * state @ self.stored.T / 11.3, dim=-1)
            state = torch.tanh(2.0 * weight @ self.stored)
        return state


class Recall(nn.Module):
    def __init__(self):
        super().__init__()
        self.noise = nn.Dropout(0.2)
        self.memory = Memory()

    def forward(self, batch):
        return torch.sign(self.memory(self.noise(batch)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--recalls", type=int, default=40000)
    args = parser.parse_args()
    torch.manual_seed(1)
    recall = Recall().eval()
    recall.compile()
    damaged = [recall.memory.stored[:128] * torch.sign(torch.rand(128, 128) - 0.2) for _ in range(6)]
    right = torch.zeros(())
    with torch.inference_mode():
        for number in range(args.recalls):
            right += (recall(damaged[number % 6]) == recall.memory.stored[:128]).float().mean()
    print("recalled", right.item() / max(args.recalls, 1))


if __name__ == "__main__":
    main()
