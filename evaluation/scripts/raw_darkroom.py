"""Develops raw burst frames: black level, white balance, tone curve, saturation, vignette."""
import argparse
import json
import time
from dataclasses import dataclass

import numpy as np
import torch

PRESET = json.loads("""{
  "black": 0.06, "gains": [1.9, 1.0, 1.55], "exposure": 0.7,
  "shoulder": 0.22, "linear": 0.3, "toe": 0.01, "saturation": 1.15, "vignette": 0.35
}""")


@dataclass
class Frame:
    number: int
    pixels: torch.Tensor


class Darkroom(torch.nn.Module):
    def __init__(self, preset, height, width):
        super().__init__()
        self.preset = preset
        self.register_buffer("gains", torch.tensor(preset["gains"])[:, None, None])
        self.register_buffer("luma", torch.tensor([0.2126, 0.7152, 0.0722])[:, None, None])
        y, x = torch.meshgrid(torch.linspace(-1, 1, height), torch.linspace(-1, 1, width), indexing="ij")
        self.register_buffer("radius", (x * x + y * y)[None])

    def film(self, x):
        a, b, t = self.preset["shoulder"], self.preset["linear"], self.preset["toe"]
        return (x * (a * x + 0.1 * b) + 0.2 * t) / (x * (a * x + b) + 0.2 * 0.3) - t / 0.3

    def forward(self, raw):
        p = self.preset
        light = (raw - p["black"]).clamp_min(0) / (1 - p["black"])
        light = light * self.gains * 2 ** p["exposure"]
        light = light / (1 + p["vignette"] * self.radius).square().reciprocal()
        toned = self.film(light).clamp(0, 1)
        grey = (toned * self.luma).sum(0, keepdim=True)
        toned = (grey + (toned - grey) * p["saturation"]).clamp(1e-5, 1)
        low = toned * 12.92
        high = 1.055 * torch.exp(torch.log(toned) / 2.4) - 0.055
        return torch.where(toned <= 0.0031308, low, high)


def burst(frames, height, width, seed=4):
    rng = np.random.default_rng(seed)
    shots = [rng.gamma(2.0, 0.15, (3, height, width)).astype(np.float32) for _ in range(6)]
    for number in range(frames):
        yield Frame(number, torch.from_numpy(shots[number % len(shots)]))


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=6000)
    parser.add_argument("--height", type=int, default=400)
    parser.add_argument("--width", type=int, default=600)
    args = parser.parse_args()
    room = Darkroom(PRESET, args.height, args.width)
    develop = torch.compile(room)
    brightest, began = 0.0, time.time()
    for frame in burst(args.frames, args.height, args.width):
        picture = develop(frame.pixels)
        brightest = max(brightest, picture[1, 0, 0].item())
        if frame.number % 500 == 499:
            print(f"{frame.number + 1} frames, {time.time() - began:.0f} s, corner at most {brightest:.3f}", flush=True)


if __name__ == "__main__":
    main()
