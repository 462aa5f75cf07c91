"""Projects a Gaussian cloud to screen-space ellipses for an orbiting preview camera."""
import os
import math
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
N_POINTS = 1_200_000
WIDTH, HEIGHT = 1920, 1080
FOCAL = 1400.0
ORBIT = 240
SECONDS = float(os.environ.get("SECONDS", "25.0"))


def quat_to_rot(q):
    q = q / q.norm(dim=-1, keepdim=True)
    w, x, y, z = q.unbind(-1)
    return torch.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ], dim=-1).view(-1, 3, 3)


def product(a, b):
    return (a[:, :, :, None] * b[:, None, :, :]).sum(2)


@torch.compile
def project(means, quats, scales, view_rot, view_t):
    cam = (means[:, None, :] * view_rot).sum(-1) + view_t
    x, y, z = cam.unbind(-1)
    z = z.clamp(min=0.2)
    rot = quat_to_rot(quats)
    m = rot * scales[:, None, :]
    sigma = product(m, m.transpose(1, 2))
    zero = torch.zeros_like(z)
    jac = torch.stack([
        FOCAL / z, zero, -FOCAL * x / (z * z),
        zero, FOCAL / z, -FOCAL * y / (z * z),
    ], dim=-1).view(-1, 2, 3)
    t = product(jac, view_rot.expand(jac.shape[0], 3, 3))
    cov = product(product(t, sigma), t.transpose(1, 2))
    a = cov[:, 0, 0] + 0.3
    b = cov[:, 0, 1]
    c = cov[:, 1, 1] + 0.3
    det = a * c - b * b
    conic = torch.stack([c / det, -b / det, a / det], dim=-1)
    mid = 0.5 * (a + c)
    radius = 3.0 * torch.sqrt(mid + torch.sqrt((mid * mid - det).clamp(min=0.1)))
    u = FOCAL * x / z + WIDTH / 2
    v = FOCAL * y / z + HEIGHT / 2
    visible = (u + radius > 0) & (u - radius < WIDTH) & (v + radius > 0) & (v - radius < HEIGHT)
    return torch.stack([u, v], -1), conic, radius * visible


def camera(k):
    ang = 2 * math.pi * k / ORBIT
    c, s = math.cos(ang), math.sin(ang)
    rot = torch.tensor([[c, 0.0, -s], [0.0, 1.0, 0.0], [s, 0.0, c]])
    return rot.to(device), torch.tensor([0.0, 0.1, 6.0]).to(device)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    means = torch.randn(N_POINTS, 3, device=device) * 1.5
    quats = torch.randn(N_POINTS, 4, device=device)
    scales = torch.rand(N_POINTS, 3, device=device) * 0.02 + 0.002
    cams = [camera(k) for k in range(ORBIT)]

    for k in range(4):
        uv, conic, radius = project(means, quats, scales, *cams[k])
    print("on screen:", int((radius > 0).sum().item()))

    frames = 0
    t0 = time.perf_counter()
    while time.perf_counter() - t0 < SECONDS:
        coverage = torch.zeros((), device=device)
        for k in range(ORBIT):
            uv, conic, radius = project(means, quats, scales, *cams[k])
            coverage += radius[::1000].sum()
        frames += ORBIT
        coverage.item()
    dt = time.perf_counter() - t0
    print(f"{frames} frames, {1e3 * dt / frames:.3f} ms/frame, mean radius sum {coverage.item() / ORBIT:.1f}")


if __name__ == "__main__":
    main()
