"""Low-latency speech cleaner for a hearing aid: one short hop of spectral frames at a time."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
WIDTH, HEADS, LAYERS, BINS = 256, 4, (3 if SMALL else 12), 160
HOP, PAST = 4, 128
DTYPE = torch.bfloat16 if DEVICE.type == "cuda" else torch.float32


class StreamLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x, keys, values, slots):
        q, k, v = self.qkv(self.n1(x)).view(1, HOP, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        keys.index_copy_(2, slots, k)
        values.index_copy_(2, slots, v)
        a = F.scaled_dot_product_attention(q, keys, values)
        x = x + self.out(a.transpose(1, 2).reshape(1, HOP, WIDTH))
        return x + self.down(F.silu(self.up(self.n2(x))))


class StreamCleaner(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp, self.mask = nn.Linear(BINS, WIDTH), nn.Linear(WIDTH, BINS)
        self.layers = nn.ModuleList(StreamLayer() for _ in range(LAYERS))

    def forward(self, frames, history, slots):
        x = self.inp(torch.log1p(frames))
        for layer, (keys, values) in zip(self.layers, history):
            x = layer(x, keys, values, slots)
        return frames * torch.sigmoid(self.mask(x))


def new_history():
    history = []
    for _ in range(LAYERS):
        keys = torch.zeros(1, HEADS, PAST, WIDTH // HEADS, device=DEVICE, dtype=DTYPE)
        values = torch.zeros_like(keys)
        history.append((keys, values))
    return history


def main():
    steps = int(os.environ.get("STEPS", "300"))
    torch.manual_seed(21)
    model = StreamCleaner().to(DEVICE, DTYPE).eval()
    clean = torch.compile(model, mode="reduce-overhead")
    history = new_history()
    audio = torch.rand(64, 1, HOP, BINS, device=DEVICE, dtype=DTYPE)
    ring = torch.arange(PAST, device=DEVICE).view(-1, HOP)
    energy = torch.zeros((), device=DEVICE)
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                if DEVICE.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            out = clean(audio[step % 64], history, ring[step % ring.shape[0]])
            energy += out.float().square().mean()
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (steps - steps // 2)
    print("mean energy", (energy / steps).item())
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
