"""Plankton particles in an analytic ocean gyre with swimming towards light."""
import os
import math
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(8)

N = 300_000
STEPS = int(os.environ.get("STEPS", "8000"))


class Ocean:
    def __init__(self, dt=0.01):
        self.dt = dt
        self.pos = torch.rand(3, N)
        self.vel = torch.zeros(3, N)
        self.heading = torch.nn.functional.normalize(torch.randn(3, N), dim=0)


def drift(pos, vel, heading, centre, axis, dt):
    rel = pos - centre
    dist = torch.sqrt((rel * rel).sum(dim=0, keepdim=True) + 1e-6)
    along = (rel * axis).sum(dim=0, keepdim=True)
    pull = -rel * torch.exp(-dist) / dist
    tangent = heading - rel * (heading * rel).sum(dim=0, keepdim=True) / (dist * dist)
    vel = 0.98 * vel + dt * (pull + 0.3 * tangent - 0.1 * along * axis)
    speed = torch.sqrt((vel * vel).sum(dim=0, keepdim=True) + 1e-9)
    vel = vel * torch.clamp(1.0 / speed, max=1.0)
    heading = heading + dt * (vel - heading * (vel * heading).sum(dim=0, keepdim=True))
    return pos + dt * vel, vel, heading


def light_axis(t):
    tilt = 0.3 * math.sin(t)
    return [math.sin(tilt), 0.0, math.cos(tilt)]


def main():
    sea = Ocean()
    centre = torch.tensor([0.5, 0.5, 0.5])[:, None]
    axis = torch.tensor([0.0, 0.0, 1.0])[:, None]
    move = torch.compile(drift)

    with torch.no_grad():
        for _ in range(3):
            move(sea.pos, sea.vel, sea.heading, centre, axis, sea.dt)

        laps = []
        for k in range(STEPS):
            axis.copy_(torch.tensor(light_axis(k * sea.dt))[:, None])
            t0 = time.perf_counter()
            sea.pos, sea.vel, sea.heading = move(
                sea.pos, sea.vel, sea.heading, centre, axis, sea.dt
            )
            laps.append(time.perf_counter() - t0)
            if k % 2000 == 0:
                print(f"t={k * sea.dt:6.2f} mean speed {sea.vel.square().mean().sqrt():.4f}")

    laps.sort()
    print(f"spread {sea.pos.std():.4f}")
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
