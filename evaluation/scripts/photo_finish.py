"""Film-look pass for a scanned archive: 12-bit scanner counts -> density -> print curve -> display values."""
import os
import time

import torch

BITS = 12
H, W = 400, 512


class PrintStock:
    """Characteristic curve of the silver layer, as sampled on the densitometer."""

    def __init__(self, gen):
        code = torch.arange(1 << BITS, dtype=torch.float32)
        self.exposure = (code + 1.0) / (1 << BITS)
        self.gamma = torch.tensor(0.62)
        self.toe = torch.tensor(0.08)
        self.shoulder = 1.7 + 0.2 * torch.rand((), generator=gen)


def characteristic(exposure, gamma, toe, shoulder):
    loge = torch.log10(exposure) + 2.4
    lifted = torch.log1p(torch.exp((loge - toe) * 6.0)) / 6.0
    density = shoulder * torch.tanh(gamma * lifted / shoulder)
    halation = 0.03 * torch.sin(loge * 2.2) * torch.erf(loge - 1.0)
    printed = torch.pow(10.0, -(density + halation).clamp(0.0, 3.0))
    return torch.pow(printed, 1.0 / 2.2)


def render(counts, exposure, gamma, toe, shoulder, lamp):
    curve = characteristic(exposure, gamma, toe, shoulder)
    picture = curve[counts]
    glow = torch.sqrt(picture) * torch.sigmoid(8.0 * (picture - 0.7))
    return torch.tanh(picture * lamp + 0.05 * glow).clamp(0.0, 1.0)


def scan(gen):
    ys, xs = torch.meshgrid(torch.arange(H), torch.arange(W), indexing="ij")
    tone = 0.5 + 0.4 * torch.sin(xs * 0.013) * torch.cos(ys * 0.017)
    plate = 0.9 * tone
    grain = 0.02 * torch.randn(H, W, generator=gen)
    return ((plate + grain).clamp(0, 0.999) * (1 << BITS)).long()


def main():
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(1907)
    stock = PrintStock(gen)
    reel = [scan(gen) for _ in range(6)]
    develop = torch.compile(render)

    brightness = torch.zeros(steps)
    t0, t_half = time.process_time(), None
    with torch.inference_mode():
        for step in range(steps):
            if step == steps // 2:
                t_half = time.process_time()
            flicker = 1.0 + 0.02 * torch.sin(torch.tensor(step * 0.7))
            lamp = 1.0 + 0.01 * torch.cos(torch.tensor(step * 0.3))
            frame = develop(
                reel[step % len(reel)],
                stock.exposure * flicker, stock.gamma, stock.toe, stock.shoulder, lamp,
            )
            brightness[step] = frame[::16, ::16].mean()
    now = time.process_time()
    print(f"{steps} frames, brightness {brightness.mean():.4f} +- {brightness.std():.4f}")
    print(f"{1e3 * (now - t_half) / (steps - steps // 2):.3f} ms/step, total {now - t0:.1f} s cpu")


if __name__ == "__main__":
    main()
