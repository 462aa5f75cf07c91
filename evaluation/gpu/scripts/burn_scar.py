"""Map burn scars from multi-band satellite tiles (mixed precision, accumulation)."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "6000"))
ACCUM = 4
BATCH = 16
BANDS = 16
SIDE = 384
DEV = "cuda"


class BandMixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(BANDS, 1, 1))
        self.shift = nn.Parameter(torch.zeros(BANDS, 1, 1))
        self.weight = nn.Parameter(torch.randn(BANDS, 1, 1) * 0.1)

    def forward(self, x):
        h = x * self.scale + self.shift
        h = h * torch.sigmoid(h)
        h = torch.tanh(h) + torch.log1p(h.abs()) * self.weight
        h = h / (1 + h.abs())
        return x + 0.3 * h


class ScarNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixers = nn.Sequential(*[BandMixer() for _ in range(4)])
        self.head = nn.Conv2d(BANDS, 2, 1)

    def forward(self, x):
        return self.head(self.mixers(x))


@torch.no_grad()
def validate(model, net, tiles, masks):
    net.eval()
    with torch.autocast(DEV, dtype=torch.float16):
        hit = (model(tiles).argmax(1) == masks).float().mean()
    net.train()
    return hit.item()


def main():
    torch.manual_seed(18)
    net = ScarNet().to(DEV)
    model = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    scaler = torch.amp.GradScaler(DEV)
    tiles = torch.randn(4, BATCH, BANDS, SIDE, SIDE, device=DEV)
    masks = (tiles[:, :, 3] > tiles[:, :, 7]).long()
    t0 = time.time()
    for step in range(STEPS):
        k = step % 3
        with torch.autocast(DEV, dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(tiles[k]), masks[k])
        scaler.scale(loss / ACCUM).backward()
        if (step + 1) % ACCUM == 0:
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            opt.zero_grad(set_to_none=True)
        if step % 300 == 0:
            acc = validate(model, net, tiles[3], masks[3])
            print(f"step {step} loss {loss.item():.4f} acc {acc:.3f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
