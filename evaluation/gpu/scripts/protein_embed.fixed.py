"""Embed protein fragments for the nightly similarity index."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "9000"))
DEPTH = 10
WIDTH = 4096
HIDDEN = 16384
FRAGS = 16
DEV = "cuda"


class MixLayer(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class FragmentEncoder(nn.Module):
    def __init__(self, depth, width, hidden):
        super().__init__()
        self.layers = nn.ModuleList([MixLayer(width, hidden) for _ in range(depth)])
        self.out = nn.Linear(width, 256)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return nn.functional.normalize(self.out(x).float(), dim=-1)


def main():
    torch.manual_seed(11)
    with torch.device(DEV):
        encoder = FragmentEncoder(DEPTH, WIDTH, HIDDEN)
        fragments = torch.randn(32, FRAGS, WIDTH)
    encoder.to(torch.bfloat16).eval()
    fragments = fragments.to(torch.bfloat16)
    embed = torch.compile(encoder)

    index = torch.zeros(32, FRAGS, 256, device=DEV)
    start = time.time()
    with torch.no_grad():
        for step in range(STEPS):
            slot = step % 32
            index[slot] = embed(fragments[slot])
            if step % 1000 == 0:
                print(f"{step:6d} checksum {index.sum().item():+.4f} {time.time() - start:.1f}s")
    print("index built:", tuple(index.shape), f"{time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
