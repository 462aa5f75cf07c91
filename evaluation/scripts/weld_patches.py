"""Patch statistics for weld-seam inspection: a light local-contrast detector over camera frames."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(101)

SIDE = 96
STEPS = int(os.environ.get("STEPS", "12000"))
LOG = 400


class SeamDetector(nn.Module):
    def __init__(self, window=5):
        super().__init__()
        self.window = window
        self.weight = nn.Parameter(torch.rand(window * window))
        self.bias = nn.Parameter(torch.tensor(-0.5))

    def forward(self, frame, threshold):
        b = frame.shape[0]
        cols = F.unfold(frame, self.window, padding=self.window // 2)
        mean = cols.mean(1, keepdim=True)
        dev = (cols - mean).abs()
        rough = (dev * torch.softmax(self.weight, 0)[None, :, None]).sum(1)
        peak = cols.amax(1) - cols.amin(1)
        heat = torch.sigmoid(6.0 * (rough + 0.3 * peak) + self.bias).view(b, SIDE, SIDE)
        return heat, (heat > threshold).float().mean((1, 2))


def frames(n):
    out = []
    for _ in range(n):
        img = torch.rand(4, 1, SIDE, SIDE) * 0.2
        at = int(torch.randint(20, SIDE - 20, ()))
        img[..., at : at + 4] += 0.6
        out.append(img)
    return out


def main():
    net = torch.compile(SeamDetector().eval())
    stream = frames(10)
    odd = frames(1)[0][:3]
    hits = 0.0
    t0 = time.perf_counter()
    with torch.inference_mode():
        for step in range(1, STEPS + 1):
            threshold = 0.5 + 0.2 * (step % 7) / 7
            batch = odd if step % 500 == 0 else stream[step % len(stream)]
            heat, share = net(batch, threshold)
            hits += share.mean().item()
            if step % LOG == 0:
                dt = (time.perf_counter() - t0) / LOG * 1e3
                print(f"frame {step} share {hits / step:.4f} peak {heat.max().item():.4f} {dt:.3f} ms/step")
                t0 = time.perf_counter()


if __name__ == "__main__":
    main()
