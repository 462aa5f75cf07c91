"""Batched colour/geometry augmentation feeding a frozen statistic collector."""
import random
import time

import numpy as np
import torch

LUMA = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)


def hue_rotate(img, theta):
    c, s = torch.cos(theta), torch.sin(theta)
    k = (1 - c) / 3
    r = torch.sqrt(torch.tensor(1 / 3.0)) * s
    a, b, d = c + k, k - r, k + r
    R, G, B = img[:, 0], img[:, 1], img[:, 2]
    return torch.stack([a * R + b * G + d * B, d * R + a * G + b * B, b * R + d * G + a * B], 1)


def transform(img, theta, gain, mirror, gray, invert, posterize, vignette):
    x = img.float() / 255.0
    x = hue_rotate(x, theta)
    x = torch.pow(x.clamp(1e-4, 1.0), gain)
    if mirror:
        x = x.flip(-1)
    if gray:
        x = 0.7 * (x * LUMA).sum(1, keepdim=True) + 0.3 * x
    if invert:
        x = 1.0 - x
    if posterize:
        x = torch.floor(x * 16) / 16
    if vignette:
        h = torch.linspace(-1, 1, x.shape[-2])[:, None]
        w = torch.linspace(-1, 1, x.shape[-1])[None, :]
        x = x * torch.exp(-0.5 * (h * h + w * w))
    mean = x.mean((2, 3), keepdim=True)
    std = x.std((2, 3), keepdim=True)
    return (x - mean) / (std + 1e-3)


class Augmenter:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.fn = torch.compile(transform)

    def coin(self, p):
        return self.rng.random() < p

    def __call__(self, img):
        theta = torch.tensor(self.rng.uniform(-0.4, 0.4))
        gain = torch.tensor(self.rng.uniform(0.7, 1.4))
        return self.fn(img, theta, gain,
                       mirror=self.coin(0.5), gray=self.coin(0.4), invert=self.coin(0.4),
                       posterize=self.coin(0.4), vignette=self.coin(0.5))


def main():
    g = torch.Generator().manual_seed(0)
    batches = [torch.randint(0, 256, (12, 3, 112, 112), dtype=torch.uint8, generator=g)
               for _ in range(6)]
    aug = Augmenter(21)
    running = torch.zeros(3)

    with torch.no_grad():
        for i in range(60):
            aug(batches[i % len(batches)])

        clock = []
        for i in range(160):
            t0 = time.perf_counter()
            out = aug(batches[i % len(batches)])
            clock.append(time.perf_counter() - t0)
            running = 0.98 * running + 0.02 * out.abs().mean((0, 2, 3))
            if i % 40 == 0:
                print(i, [round(v, 4) for v in running.tolist()])

    print(f"transform: {np.median(clock) * 1e3:.2f} ms per batch")


if __name__ == "__main__":
    main()
