"""Refine depth maps from a stereo rig, frame by frame."""
import argparse
import time

import torch
import torch.nn as nn


class Relax(nn.Module):
    """One sweep of an edge-aware smoother with learned stiffness."""

    def __init__(self, channels):
        super().__init__()
        self.stiff = nn.Parameter(torch.rand(channels, 1, 1))
        self.pull = nn.Parameter(torch.rand(channels, 1, 1) * 0.1)

    def forward(self, depth, guide):
        north, south = depth.roll(1, -2), depth.roll(-1, -2)
        west, east = depth.roll(1, -1), depth.roll(-1, -1)
        edge = torch.exp(-self.stiff * (guide - guide.roll(1, -1)).square())
        curve = (north + south - 2 * depth) * 0.2 + (west + east - 2 * depth) * 0.2 * edge
        return torch.tanh(depth + curve) - self.pull * torch.sin(depth - guide)


class DepthStack(nn.Module):
    def __init__(self, channels=4, sweeps=6):
        super().__init__()
        self.sweeps = nn.ModuleList(Relax(channels) for _ in range(sweeps))

    def forward(self, depth, guide):
        for sweep in self.sweeps:
            depth = sweep(depth, guide)
        return depth


def speed_up(model, names=("Relax",)):
    for part in model.modules():
        if type(part).__name__ in names:
            part = torch.compile(part, dynamic=False)
    return model


def camera(frames, size, generator):
    base = torch.rand(4, size, size, generator=generator)
    for number in range(frames):
        yield base.roll(number % size, -1), base


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=9000)
    parser.add_argument("--size", type=int, default=160)
    parser.add_argument("--no-compile", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = DepthStack().eval()
    if not args.no_compile:
        model = speed_up(model)
    began, total = time.time(), torch.zeros(())
    with torch.inference_mode():
        for number, (depth, guide) in enumerate(camera(args.frames, args.size, torch.Generator().manual_seed(1))):
            refined = model(depth, guide)
            total += refined.mean()
            if number % 1000 == 999:
                print(f"{number + 1} frames, {(number + 1) / (time.time() - began):.0f} a second, {total.item():.2f}")


if __name__ == "__main__":
    main()
