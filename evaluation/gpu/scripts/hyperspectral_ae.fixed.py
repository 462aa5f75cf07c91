"""Autoencoder over hyperspectral pixels; scenes live in page-locked host memory."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
CUDA = device.type == "cuda"
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
PIXELS = 512 if SMALL else 196_608
BANDS, HIDDEN = 256, (64 if SMALL else 1024)
TILES = 4


class SpectralAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc1, self.enc2 = nn.Linear(BANDS, HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.code = nn.Linear(HIDDEN, 32)
        self.dec1, self.dec2 = nn.Linear(32, HIDDEN), nn.Linear(HIDDEN, BANDS)

    def forward(self, x):
        h = F.gelu(self.enc2(F.gelu(self.enc1(x))))
        y = self.dec2(F.gelu(self.dec1(self.code(h))))
        cos = F.cosine_similarity(x, y.float(), dim=-1)
        return (1 - cos).mean() + 0.1 * F.mse_loss(y.float(), x)


class TileStream:
    """Hands out one tile at a time; the next one is uploaded on a stream of its own."""

    def __init__(self, tiles):
        self.tiles, self.at = tiles, 0
        self.stream = torch.cuda.Stream() if CUDA else None
        self.next = None
        self.preload()

    def preload(self):
        host = self.tiles[self.at % len(self.tiles)]
        self.at += 1
        if not CUDA:
            self.next = host.clone()
            return
        # memory freed by the main stream may be handed to us: let it finish first
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            self.next = host.to(device, non_blocking=True)

    def get(self):
        if CUDA:
            torch.cuda.current_stream().wait_stream(self.stream)
        return self.next


def clock():
    if CUDA:
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    torch.manual_seed(0)
    tiles = [torch.rand(PIXELS, BANDS) for _ in range(TILES)]
    if CUDA:
        tiles = [t.pin_memory() for t in tiles]
    model = SpectralAE().to(device)
    loss_fn = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    stream = TileStream(tiles)
    seen = torch.zeros((), device=device)
    start = clock()
    for step in range(STEPS):
        if step == STEPS // 2:
            start = clock()
        tile = stream.get()
        stream.preload()
        with torch.autocast(device.type, dtype=torch.bfloat16):
            loss = loss_fn(tile)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        seen += loss.detach()
    elapsed = clock() - start
    print(f"mean loss {seen.item() / STEPS:.4f}")
    print(f"step_ms={elapsed / (STEPS - STEPS // 2) * 1e3:.3f}")


if __name__ == "__main__":
    main()
