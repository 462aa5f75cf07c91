"""Suppress static clutter in range-Doppler maps with a learned gain and a stored site map."""
import os
import time

import torch
import torch.nn as nn

device = "cuda"
STEPS = int(os.environ.get("STEPS", "2500"))
RANGE = 3072
DOPPLER = 4096


class ClutterFilter(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(RANGE, 1))
        self.bias = nn.Parameter(torch.zeros(1, DOPPLER))
        self.site_map = torch.rand(RANGE, DOPPLER) * 2.0

    def forward(self, power):
        site = self.site_map.to(power.device)
        level = torch.log1p(power) - self.gain * site
        level = level + self.bias
        floor = level.mean(1, keepdim=True)
        spread = (level - floor).square().mean(1, keepdim=True).sqrt()
        snr = (level - floor) / (spread + 1e-3)
        return torch.sigmoid(3.0 * (snr - 1.5)) * torch.relu(snr)


def scans(n):
    return [torch.rand(RANGE, DOPPLER, device=device).exponential_() for _ in range(n)]


@torch.inference_mode()
def main():
    torch.manual_seed(14)
    model = ClutterFilter().to(device).eval()
    model.compile()
    frames = scans(6)
    detections = torch.zeros((), device=device)
    for f in frames[:3]:
        model(f)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        out = model(frames[step % len(frames)])
        detections += (out > 2.0).float().mean()
        if step % 250 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"scan {step:5d}  detection rate {detections.item() / step:.5f}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
