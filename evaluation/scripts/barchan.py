"""Sand surface of a dune field: slope-dependent creep plus wind-driven saltation on a periodic tile."""
import math
import os

import torch
import torch.nn.functional as F

STEPS = int(os.environ.get("STEPS", "14000"))
SIDE = 320
REPOSE = math.tan(math.radians(33.0))


def make_field(seed):
    g = torch.Generator().manual_seed(seed)
    coarse = torch.rand(1, 1, SIDE // 16, SIDE // 16, generator=g)
    field = F.interpolate(coarse, size=(SIDE, SIDE), mode="bicubic", align_corners=False)
    return field[0, 0].clamp_(0.0, 1.0) * 4.0


def wrap_edges(h):
    return F.pad(h[None, None], (2, 2, 2, 2), mode="circular")[0, 0]


def mobility(h, moisture):
    return torch.atan2(torch.sin(h * REPOSE), h * h + moisture)


def spread(m):
    n = SIDE + 4
    core = m[2:n - 2, 2:n - 2]
    near = m[1:n - 3, 2:n - 2] + m[3:n - 1, 2:n - 2] + m[2:n - 2, 1:n - 3] + m[2:n - 2, 3:n - 1]
    diag = m[1:n - 3, 1:n - 3] + m[3:n - 1, 3:n - 1] + m[1:n - 3, 3:n - 1] + m[3:n - 1, 1:n - 3]
    far = m[0:n - 4, 2:n - 2] + m[4:n, 2:n - 2] + m[2:n - 2, 0:n - 4] + m[2:n - 2, 4:n]
    return 0.16 * near + 0.06 * diag + 0.03 * far - core


@torch.compile
def creep(h_padded, moisture):
    m = mobility(h_padded, moisture)
    return spread(m)


def advance(h, moisture, wind):
    dh = creep(wrap_edges(h), moisture)
    h = h + 0.05 * dh
    return torch.lerp(h, torch.roll(h, 1, dims=1), wind)


def roughness(h):
    return (h[:, 1:] - h[:, :-1]).abs().mean().item()


def main():
    torch.manual_seed(4)
    h = make_field(11)
    moisture = torch.tensor(0.4)
    every = max(1, STEPS // 20)
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            h = advance(h, moisture, 0.02)
            if step % every == 0:
                print(f"step {step}  mean height {h.mean().item():.4f}  roughness {roughness(h):.5f}")


if __name__ == "__main__":
    main()
