"""Gradient search over wing parametrisations through a trained drag/lift surrogate."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
WIDTH = 64 if SMALL else 4096
CANDIDATES = 32 if SMALL else 4096
PARAMS, DEPTH = 96, 6
DTYPE = torch.bfloat16


class Surrogate(nn.Module):
    """Predicts (drag, lift, pitching moment) of a wing from its shape parameters."""

    def __init__(self):
        super().__init__()
        self.lift_in = nn.Linear(PARAMS, WIDTH)
        self.hidden = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
        self.out = nn.Linear(WIDTH, 3)

    def forward(self, shape):
        h = F.silu(self.lift_in(shape))
        for layer in self.hidden:
            h = h + F.silu(layer(h))
        return self.out(h).float()


def load_surrogate():
    gen = torch.Generator().manual_seed(7)
    net = Surrogate()
    state = {k: torch.randn(v.shape, generator=gen) * v.shape[-1] ** -0.5 * 0.5
             for k, v in net.state_dict().items()}
    net.load_state_dict(state)
    return net.to(device, DTYPE).eval().requires_grad_(False)


def clock():
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    torch.manual_seed(0)
    surrogate = torch.compile(load_surrogate())
    shape = torch.randn(CANDIDATES, PARAMS, device=device).mul_(0.3)
    velocity = torch.zeros_like(shape)
    target_lift = torch.linspace(-0.2, 0.8, CANDIDATES, device=device)
    history = []
    start = clock()
    for step in range(STEPS):
        if step == STEPS // 2:
            start = clock()
        x = shape.to(DTYPE).requires_grad_(True)
        drag, lift, moment = surrogate(x).unbind(-1)
        cost = F.softplus(drag) + 4.0 * (lift - target_lift).square() + 0.2 * moment.square()
        (g,) = torch.autograd.grad(cost.sum(), x)
        velocity.mul_(0.9).add_(g.float(), alpha=-1e-3)
        shape.add_(velocity).clamp_(-2.0, 2.0)
        if step % 50 == 0:
            history.append(cost.detach().mean())
    elapsed = clock() - start
    print("cost " + " ".join(f"{c.item():.4f}" for c in history))
    print(f"step_ms={elapsed / (STEPS - STEPS // 2) * 1e3:.3f}")


if __name__ == "__main__":
    main()
