"""Best saw depth for stone blocks: descent with per-block gradients from torch.func."""
import copy
import os

import torch
from torch import nn
from torch.func import grad, vmap

STEPS = int(os.environ.get("STEPS", "40000"))
BLOCKS, CUTS = 262144, 512
torch.manual_seed(6)


class Stone(nn.Module):
    def __init__(self):
        super().__init__()
        self.hard = nn.Parameter(torch.rand(CUTS) + 0.5)
        self.vein = nn.Parameter(torch.rand(CUTS) * 6)

    def forward(self, depth):
        waste = self.hard * torch.log1p(depth.square())
        crack = torch.exp(-(depth - self.vein).square())
        return (waste - 2.0 * crack + 0.1 * torch.sin(3 * depth)).sum()


def lagged(model, rate=0.02):
    shadow = copy.deepcopy(model).requires_grad_(False)

    def follow():
        torch._foreach_lerp_(list(shadow.parameters()), list(model.parameters()), rate)

    return shadow, follow


def main():
    stone = Stone().to("cuda")
    shadow, follow = lagged(stone)

    @torch.compile
    def saw(depth, speed, toll):
        slope = vmap(grad(lambda d: shadow(d) + 0.01 * (toll * d).sum()))(depth)
        speed = 0.9 * speed - 0.01 * slope / (1.0 + slope.abs())
        depth = (depth + speed).clamp(-1.0, 8.0)
        return depth, speed

    depth = torch.rand(BLOCKS, CUTS, device="cuda") * 6
    speed = torch.zeros_like(depth)
    toll = torch.ones(CUTS, device="cuda")
    with torch.no_grad():
        for step in range(STEPS):
            depth, speed = saw(depth, speed, toll)
            if step % 10 == 0:
                stone.hard.mul_(0.9999)
                follow()
            if step % 500 == 0:
                toll.fill_(1.0 + depth.mean().item())
            if step % 1000 == 0:
                print("cut", step, "depth", round(depth.mean().item(), 5), "spread", round(depth.std().item(), 5))


main()
