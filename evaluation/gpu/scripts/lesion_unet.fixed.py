"""Segment lesions in scan slices with a shallow encoder-decoder network."""
import argparse
import time

import torch
from torch import nn


def unit(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.GroupNorm(8, cout), nn.SiLU())


class Segmenter(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enter = unit(1, width)
        self.down1 = unit(width, 2 * width)
        self.down2 = unit(2 * width, 4 * width)
        self.up1 = unit(6 * width, 2 * width)
        self.up2 = unit(3 * width, width)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = self.enter(x)
        b = self.down1(nn.functional.avg_pool2d(a, 2))
        c = self.down2(nn.functional.avg_pool2d(b, 2))
        b = self.up1(torch.cat([nn.functional.interpolate(c, scale_factor=2.0), b], 1))
        a = self.up2(torch.cat([nn.functional.interpolate(b, scale_factor=2.0), a], 1))
        return self.out(a)


def dice(logits, mask):
    p = torch.sigmoid(logits.float())
    inter = (p * mask).sum((1, 2, 3))
    return 1.0 - ((2 * inter + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


def scans(n, side, device):
    """Smooth backgrounds with one bright ellipse each; kept on the device."""
    g = torch.Generator(device=device).manual_seed(4)
    grid = torch.linspace(-1, 1, side, device=device)
    yy, xx = torch.meshgrid(grid, grid, indexing="ij")
    cx, cy, rx, ry = (torch.rand(4, n, 1, 1, generator=g, device=device) - 0.5).unbind(0)
    mask = (((xx - cx) / (0.15 + rx.abs() / 2)) ** 2 + ((yy - cy) / (0.15 + ry.abs() / 2)) ** 2 < 1).float()
    image = 0.4 * mask + 0.3 * torch.sin(4 * xx + 9 * cx) * torch.cos(3 * yy + 9 * cy)
    image += 0.2 * torch.randn(image.shape, generator=g, device=device)
    return image[:, None], mask[:, None]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=700)
    ap.add_argument("--batch", type=int, default=16)
    ap.add_argument("--side", type=int, default=256)
    args = ap.parse_args()
    device = "cuda"

    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True
    net = Segmenter().to(device, memory_format=torch.channels_last)
    model = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    images, masks = scans(512, args.side, device)
    seen = torch.zeros((), device=device)
    began = time.perf_counter()
    for i in range(args.steps):
        lo = (i * args.batch) % (len(images) - args.batch + 1)
        x, m = images[lo : lo + args.batch], masks[lo : lo + args.batch]
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = dice(model(x), m)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        seen += loss.detach()
        if i % 100 == 99:
            print(f"{i + 1} dice loss {seen.item() / 100:.4f} {time.perf_counter() - began:.1f} s")
            seen.zero_()
    print(f"peak memory {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
