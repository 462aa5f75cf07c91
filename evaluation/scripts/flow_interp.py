"""Frame interpolation: refine a bidirectional flow field so that both neighbours warp onto the middle frame."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

H, W = 128, 160


class Refiner(nn.Module):
    def __init__(self):
        super().__init__()
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, H), torch.linspace(-1, 1, W), indexing="ij")
        self.register_buffer("base", torch.stack([xs, ys], -1)[None])
        self.register_buffer("scale", torch.tensor([2.0 / W, 2.0 / H]))
        self.gain = nn.Parameter(torch.full((8,), 0.6))

    def warp(self, feat, flow):
        grid = self.base + flow.permute(0, 2, 3, 1) * self.scale
        return F.grid_sample(feat, grid, mode="bilinear", padding_mode="border", align_corners=True)

    def forward(self, prev, nxt, flow, t):
        a = self.warp(prev, -t * flow)
        b = self.warp(nxt, (1.0 - t) * flow)
        diff = torch.tanh((a - b) * self.gain.view(1, -1, 1, 1))
        weight = torch.sigmoid(-diff.abs().mean(1, keepdim=True))
        mid = weight * a + (1.0 - weight) * b
        return mid, diff.pow(2).mean((1, 2, 3))


def clip(n, gen):
    ys, xs = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
    frames = []
    phase = torch.rand(8, generator=gen) * 6.28
    for k in range(n):
        planes = [torch.sin(xs * 0.07 * (c + 1) + 0.2 * k + phase[c]) * torch.cos(ys * 0.05 * (8 - c)) for c in range(8)]
        frames.append(torch.stack(planes)[None].float())
    return frames


def main():
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(31)
    frames = clip(12, gen)
    model = Refiner().eval()
    run = torch.compile(model)
    flow = torch.randn(1, 2, H, W, generator=gen)
    flow = F.avg_pool2d(flow, 9, 1, 4) * 8
    ts = torch.tensor([0.25, 0.5, 0.75])

    residual, written = 0.0, 0
    t0, t_half = time.process_time(), None
    with torch.inference_mode():
        for step in range(steps):
            if step == steps // 2:
                t_half = time.process_time()
            k = step % (len(frames) - 1)
            mid, err = run(frames[k], frames[k + 1], flow, ts[step % 3])
            residual += float(err)
            written += mid.numel()
    now = time.process_time()
    print(f"{written / 1e6:.1f} M samples written, mean residual {residual / steps:.5f}")
    print(f"{1e3 * (now - t_half) / (steps - steps // 2):.3f} ms/step, total {now - t0:.1f} s cpu")


if __name__ == "__main__":
    main()
