"""Track many targets with one-dimensional constant-velocity filters, in closed form."""
import argparse
from typing import NamedTuple

import torch
from torch import Tensor


class Track(NamedTuple):
    position: Tensor
    speed: Tensor
    p11: Tensor
    p12: Tensor
    p22: Tensor


def predict(t: Track, dt: float, noise: float) -> Track:
    return Track(
        t.position + dt * t.speed,
        t.speed,
        t.p11 + 2 * dt * t.p12 + dt * dt * t.p22 + noise,
        t.p12 + dt * t.p22,
        t.p22 + noise,
    )


def correct(t: Track, seen: Tensor, variance: float) -> Track:
    gain = t.p11 / (t.p11 + variance)
    cross = t.p12 / (t.p11 + variance)
    surprise = seen - t.position
    return Track(
        t.position + gain * surprise,
        t.speed + cross * surprise,
        (1 - gain) * t.p11,
        (1 - gain) * t.p12,
        t.p22 - cross * t.p12,
    )


def observe(track: Track, seen: Tensor) -> Track:
    return correct(predict(track, 0.1, 1e-3), seen, 0.25)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=200000)
    args = parser.parse_args()
    torch.manual_seed(0)
    zeros, ones = torch.zeros(16384), torch.ones(16384)
    track = Track(zeros, zeros, ones, zeros, ones)
    step = torch.compile(observe)
    measured = torch.randn(16, 16384).cumsum(0).unbind()
    with torch.no_grad():
        for frame in range(args.frames):
            track = step(track, measured[frame % 16])
    print("mean position", track.position.mean().item())


if __name__ == "__main__":
    main()
