"""Vessel enhancement: ridge response, then grey-scale dilation, per slice."""
import os
import time
import torch
import torch.nn.functional as F

torch.manual_seed(33)

B, C, H, W = 4, 8, 128, 128
SLICES = 6
STEPS = 90
STEPS = int(os.environ.get("STEPS", STEPS))


def response(raw):
    wave = torch.sin(raw) * raw.cos() + 0.1 * raw.exp()
    return torch.tanh(wave) * 0.5 + torch.sigmoid(raw)


def enhance(raw):
    return F.max_pool2d(fast_response(raw), kernel_size=5, stride=1, padding=2)


fast_response = torch.compile(response)


class Volume:
    def __init__(self, n):
        low = torch.randn(n, B, C, H // 8, W // 8)
        self.slices = [F.interpolate(s, size=(H, W), mode="bicubic") for s in low]

    def __iter__(self):
        k = 0
        while True:
            yield self.slices[k % len(self.slices)]
            k += 1


def main():
    fn = enhance
    volume = iter(Volume(SLICES))
    lap = []
    profile = torch.zeros(C)
    for k in range(STEPS):
        raw = next(volume)
        t0 = time.perf_counter()
        out = fn(raw)
        lap.append(time.perf_counter() - t0)
        profile += out.mean((0, 2, 3))
        if k % 20 == 0:
            print(f"slice {k:4d} mean response {out.mean().item():.4f}")
    lap = sorted(lap[STEPS // 2:])
    print(f"strongest channel {int(profile.argmax())}")
    print(f"median slice {lap[len(lap) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
