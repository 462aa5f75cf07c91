"""Which timing parameters matter? Directional sensitivities of a pulse-profile simulator."""
import os
import time
import torch
from torch.func import jvp

torch.manual_seed(2)

PHASES = torch.linspace(0, 1, 512)
EPOCHS = torch.linspace(0, 40, 128)[:, None]


def profile(theta):
    spin, drift, width, tilt, skew, echo, lag, floor = theta.unbind()
    phase = (PHASES + spin * EPOCHS + 0.5 * drift * EPOCHS ** 2) % 1.0
    wave = torch.sin(2 * torch.pi * (phase - 0.5))
    main = torch.exp(-((phase - 0.5) / (0.05 + width.abs())) ** 2)
    side = torch.exp(-((phase - 0.5 - lag) / (0.08 + width.abs())) ** 2) * torch.sigmoid(echo)
    shape = main * (1 + tilt * wave + skew * wave ** 3) + side
    shape = torch.tanh(shape * 1.5) + 0.05 * torch.cos(6.0 * phase + tilt)
    return shape * torch.exp(-0.01 * EPOCHS * drift.abs()) + floor


@torch.compile
def sensitivity(theta, direction):
    _, change = jvp(profile, (theta,), (direction,))
    return change.square().mean().sqrt()


def main():
    theta = torch.tensor([0.021, 0.0004, 0.06, 0.1, -0.05, -1.0, 0.18, 0.02])
    scores = torch.zeros(8)
    start = time.time()
    for step in range(int(os.environ.get("STEPS", "1500"))):
        spot = theta * (1 + 0.05 * torch.randn(8))
        axis = step % 8
        direction = torch.zeros(8)
        direction[axis] = theta[axis].abs()
        scores[axis] = 0.9 * scores[axis] + 0.1 * sensitivity(spot, direction)
        if step % 150 == 149:
            ranking = scores.argsort(descending=True).tolist()
            print(f"{step + 1:5d}  most sensitive {ranking[:3]}  {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
