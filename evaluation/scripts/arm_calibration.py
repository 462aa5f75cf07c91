"""Calibrate the joints of a robot arm from photographs of its gripper."""
import argparse
import warnings

import torch
import torch.nn as nn


def skew(w):
    zero = torch.zeros_like(w[..., 0])
    x, y, z = w.unbind(-1)
    return torch.stack((zero, -z, y, z, zero, -x, -y, x, zero), -1).unflatten(-1, (3, 3))


def rotation(w):
    """Rodrigues' formula, checked: a rotation is its own inverse's transpose."""
    angle = w.square().sum(-1).add(1e-8).sqrt()[..., None, None]
    k = skew(w) / angle
    turn = torch.eye(3) + torch.sin(angle) * k + (1 - torch.cos(angle)) * (k @ k)
    if not torch.allclose(turn @ turn.mT, torch.eye(3).expand_as(turn), atol=1e-3):
        raise ValueError("not a rotation")
    return turn


class Arm(nn.Module):
    def __init__(self):
        super().__init__()
        self.shoulder, self.elbow, self.wrist = (nn.Parameter(torch.randn(3)) for _ in range(3))
        self.links = nn.Parameter(torch.randn(3, 3) * 0.4)
        self.lens = nn.Parameter(torch.tensor([0.02, -0.01, 0.003]))

    def forward(self, angles):
        upper = rotation(self.shoulder + angles[:, 0])
        lower = upper @ rotation(self.elbow + angles[:, 1])
        hand = lower @ rotation(self.wrist + angles[:, 2])
        tip = (upper @ self.links[0]) + (lower @ self.links[1]) + (hand @ self.links[2])
        flat = tip[:, :2] / (3 + tip[:, 2:]).clamp_min(0.2)
        r = flat.square().sum(-1, keepdim=True)
        seen = flat * (1 + self.lens[0] * r + self.lens[1] * r.square() + self.lens[2] * r.pow(3))
        return seen, r.detach()


def photographs(count, seed=5):
    generator = torch.Generator().manual_seed(seed)
    angles = torch.rand(count, 3, 3, generator=generator) * 2 - 1
    return angles, torch.randn(count, 2, generator=generator) * 0.3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=2500)
    parser.add_argument("--photographs", type=int, default=6000)
    args = parser.parse_args()
    torch.manual_seed(0)
    arm = Arm()
    optimizer = torch.optim.Adam(arm.parameters(), 1e-2)
    angles, marks = photographs(args.photographs)

    @torch.compile
    def misfit(angles, marks):
        seen, r = arm(angles)
        far = r.amax().item()
        if far > 1e4:
            warnings.warn(f"a mark lies far outside the picture ({far:.0f})")
        return (seen - marks).square().sum(-1).add(1e-4).sqrt().mean()

    for iteration in range(args.iterations):
        loss = misfit(angles, marks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if iteration % 200 == 199:
            print(f"{iteration + 1:5d}  {loss.item():.4f}")


if __name__ == "__main__":
    main()
