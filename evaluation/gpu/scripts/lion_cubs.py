"""Deep narrow network for zoo feeding plans, trained with a home-made optimiser."""
import argparse

import torch
from torch import nn

DEVICE = "cuda"


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, decay=decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["trend"] = torch.zeros_like(p)
                trend = state["trend"]
                direction = (trend * b1 + p.grad * (1 - b1)).sign()
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_(direction, alpha=-group["lr"])
                trend.mul_(b2).add_(p.grad, alpha=1 - b2)


class Unit(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lin = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        return x + self.scale * torch.nn.functional.silu(self.lin(self.norm(x)))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=3000)
    args = ap.parse_args()
    torch.manual_seed(13)
    model = nn.Sequential(nn.Linear(40, 96), *[Unit(96) for _ in range(40)], nn.Linear(96, 7)).to(DEVICE)
    optimiser = Lion(model.parameters())
    plan = torch.compile(model)
    records = torch.randn(4096, 40, device=DEVICE)
    portion = records[:, :7].softmax(-1)
    for step in range(args.steps):
        lo = (step * 128) % 4096
        loss = nn.functional.cross_entropy(plan(records[lo:lo + 128]), portion[lo:lo + 128])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        if step % 500 == 0:
            print(f"step {step:5d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
