"""Scores a catalogue in fixed chunks and picks the global top items."""
import os
import os
import time
import torch
import torch.nn as nn

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(2)

CHUNK, CHUNKS, DIM = 2048, 40, 256
EPOCHS = 60
EPOCHS = int(os.environ.get("EPOCHS", EPOCHS))


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(DIM, 512), nn.GELU(), nn.LayerNorm(512),
            nn.Linear(512, 512), nn.GELU(), nn.LayerNorm(512),
            nn.Linear(512, DIM))

    def forward(self, items, query):
        return (self.net(items) * query).sum(-1).sigmoid()


def main():
    tower = Tower().to(DEV).eval()
    score = torch.compile(tower, mode="reduce-overhead")
    catalogue = [torch.randn(CHUNK, DIM, device=DEV) for _ in range(CHUNKS)]
    laps = []
    seen = set()
    with torch.no_grad():
        for e in range(EPOCHS):
            query = torch.randn(DIM, device=DEV)
            sync()
            t0 = time.perf_counter()
            parts = []
            for chunk in catalogue:
                parts.append(score(chunk, query))
            top = torch.cat(parts).topk(10)
            seen.update(top.indices.tolist())
            sync()
            laps.append(time.perf_counter() - t0)
            if e % 10 == 0:
                print(f"query {e}: best score {top.values[0].item():.4f}")
    laps = sorted(laps[EPOCHS // 2:])
    print(f"{len(seen)} distinct items recommended")
    print(f"median query {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
