"""Per-ring range and intensity calibration of a spinning lidar against a reference surface."""
import os
import time

import torch
import torch.nn as nn

SMALL = os.environ.get("SMALL") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
RINGS = 6
POINTS = RINGS * (2000 if SMALL else 700_000)


class RingCalibration(nn.Module):
    def __init__(self):
        super().__init__()
        self.rings = nn.Embedding(RINGS, 2)
        nn.init.constant_(self.rings.weight, 1.0)
        self.gamma = nn.Parameter(torch.tensor(0.9))

    def coefficients(self, ring):
        return sum((ring == r).unsqueeze(-1) * self.rings.weight[r] for r in range(RINGS))

    def forward(self, ring, rng, intensity, incidence):
        scale, gain = self.coefficients(ring).unbind(-1)
        distance = rng * scale
        falloff = torch.exp(-distance / 80.0) * incidence.clamp_min(0.05) ** self.gamma
        return distance, intensity * gain / falloff


def residual(model, ring, rng, intensity, incidence, true_range, albedo):
    distance, reflect = model(ring, rng, intensity, incidence)
    miss = (distance - true_range) / (1.0 + 0.01 * true_range)
    tone = torch.log1p(reflect.clamp_min(0)) - torch.log1p(albedo)
    return (torch.sqrt(1 + miss**2) - 1).mean() + 0.5 * (torch.sqrt(1 + tone**2) - 1).mean()


def make_scan(gen):
    ring = torch.arange(RINGS).repeat_interleave(POINTS // RINGS)
    bias = 1.0 + 0.02 * torch.randn(RINGS, generator=gen)
    true_range = 2 + 70 * torch.rand(POINTS, generator=gen)
    incidence = torch.rand(POINTS, generator=gen)
    albedo = torch.rand(POINTS, generator=gen)
    rng = true_range / bias[ring] + 0.02 * torch.randn(POINTS, generator=gen)
    intensity = albedo * torch.exp(-true_range / 80.0) * incidence.clamp_min(0.05)
    return [t.to(DEVICE) for t in (ring, rng, intensity, incidence, true_range, albedo)]


def main():
    steps = int(os.environ.get("STEPS", "300"))
    torch.manual_seed(17)
    model = RingCalibration().to(DEVICE)
    objective = torch.compile(residual)
    optim = torch.optim.SGD(model.parameters(), lr=0.05)
    scans = [make_scan(torch.Generator().manual_seed(s)) for s in range(3)]
    for step in range(steps):
        if step == steps // 2:
            if DEVICE.type == "cuda":
                torch.cuda.synchronize()
            t0 = time.perf_counter()
        loss = objective(model, *scans[step % len(scans)])
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    ms = (time.perf_counter() - t0) * 1e3 / (steps - steps // 2)
    print("loss", loss.item(), "scales", model.rings.weight[:, 0].tolist())
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
