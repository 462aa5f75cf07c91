"""Embeds windows of a genome with a wide pretrained trunk and writes their norms to a table."""
import os
import time

import torch
import torch.nn as nn


class Trunk(nn.Module):
    def __init__(self, bases=4, window=256, width=1536):
        super().__init__()
        self.stem = nn.Linear(bases * window, width)
        self.middle = nn.ModuleList([nn.Linear(width, width) for _ in range(4)])
        self.tail = nn.Linear(width, 256)

    def forward(self, windows):
        h = torch.relu(self.stem(windows.flatten(1)))
        for layer in self.middle:
            h = torch.relu(layer(h))
        return self.tail(h)


def one_hot_windows(sequence, window, batch):
    table = torch.nn.functional.one_hot(sequence, 4).float()
    starts = torch.arange(batch) * 3
    return torch.stack([table[s:s + window] for s in starts.tolist()])


def main():
    chunks = int(os.environ.get("CHUNKS", "4000"))
    torch.manual_seed(0)
    genome = torch.randint(0, 4, (4096,))
    batch = one_hot_windows(genome, 256, 128)
    trunk = Trunk().eval()
    embed = torch.compile(trunk)
    with torch.inference_mode():
        for _ in range(3):
            embed(batch)
        start = time.perf_counter()
        norms = torch.zeros(128)
        for _ in range(chunks):
            norms += embed(batch).norm(dim=1)
        seconds = time.perf_counter() - start
    print(f"{chunks * 128 / seconds:.0f} windows a second, norm {norms.mean().item() / chunks:.3f}")


if __name__ == "__main__":
    main()
