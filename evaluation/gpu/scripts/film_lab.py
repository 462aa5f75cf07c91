import os
import time

import numpy as np
import torch

STEPS = int(os.environ.get("STEPS", "7000"))
FRAMES = 4
HEIGHT, WIDTH = 2160, 3840

device = "cuda" if torch.cuda.is_available() else "cpu"


@torch.library.custom_op("filmlab::print_stock", mutates_args=())
def print_stock(density: torch.Tensor, toe: float, shoulder: float, gamma: float) -> torch.Tensor:
    lo = torch.sigmoid((density - toe) * 6.0)
    hi = 1.0 - torch.sigmoid((density - shoulder) * 4.0)
    mid = density * gamma
    curve = lo * hi * mid + (1.0 - hi) * (shoulder + 0.1 * torch.tanh(mid - shoulder))
    return torch.clamp(curve, 0.0, 1.0)


@print_stock.register_fake
def _(density, toe, shoulder, gamma):
    return torch.empty_like(density)


class Grade(torch.nn.Module):
    def __init__(self):
        super().__init__()
        dyes = np.array([[0.92, 0.06, 0.02], [0.05, 0.88, 0.07], [0.01, 0.09, 0.90]], dtype=np.float32)
        self.register_buffer("dyes", torch.from_numpy(dyes))
        self.register_buffer("lift", torch.tensor([0.012, 0.010, 0.016]).view(1, 3, 1, 1))
        self.register_buffer("gain", torch.tensor([1.04, 1.00, 0.97]).view(1, 3, 1, 1))
        self.exposure = 0.35

    def crosstalk(self, rgb):
        r, g, b = rgb[:, 0], rgb[:, 1], rgb[:, 2]
        d = self.dyes
        return torch.stack(
            [
                d[0, 0] * r + d[0, 1] * g + d[0, 2] * b,
                d[1, 0] * r + d[1, 1] * g + d[1, 2] * b,
                d[2, 0] * r + d[2, 1] * g + d[2, 2] * b,
            ],
            dim=1,
        )

    def forward(self, linear):
        x = linear * (2.0 ** self.exposure)
        x = self.crosstalk(x)
        density = torch.log1p(x * 4.0) * 0.62
        x = print_stock(density, 0.08, 0.82, 1.18)
        x = x * self.gain + self.lift
        return torch.clamp(x * 255.0 + 0.5, 0, 255).to(torch.uint8)


@torch.no_grad()
def main():
    torch.manual_seed(21)
    grade = torch.compile(Grade().to(device), fullgraph=True)
    clip = torch.rand(FRAMES, 3, HEIGHT, WIDTH, device=device)

    for _ in range(3):
        out = grade(clip)
    if device == "cuda":
        torch.cuda.synchronize()

    started = time.perf_counter()
    for step in range(STEPS):
        out = grade(clip)
        if step % 1000 == 0:
            print(f"batch {step}: centre pixel {out[0, :, HEIGHT // 2, WIDTH // 2].tolist()}")
    if device == "cuda":
        torch.cuda.synchronize()
    elapsed = time.perf_counter() - started
    print(f"{FRAMES * STEPS / elapsed:.1f} frames per second ({elapsed / STEPS * 1e3:.3f} ms a batch)")


if __name__ == "__main__":
    main()
