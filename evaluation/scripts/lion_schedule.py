"""Custom sign-momentum optimiser for a model with many small tensors."""
import math
import time

import torch
from torch import nn


class SignMomentum(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, b1=0.9, b2=0.99, wd=0.01):
        super().__init__(params, dict(lr=torch.tensor(lr), b1=b1, b2=b2, wd=wd))
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["m"] = torch.zeros_like(p)

    @torch.no_grad()
    def apply(self):
        for group in self.param_groups:
            lr, b1, b2, wd = group["lr"], group["b1"], group["b2"], group["wd"]
            for p in group["params"]:
                m = self.state[p]["m"]
                g = p.grad
                upd = torch.lerp(g, m, b1)
                upd = upd / (upd.abs() + 1e-3 * upd.square().mean().sqrt() + 1e-12)
                p.mul_(1 - lr * wd).sub_(lr * upd)
                m.mul_(b2).add_(g, alpha=1 - b2)


class Expert(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.a = nn.Linear(d, d)
        self.b = nn.Linear(d, d)
        self.scale = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x + self.scale * self.b(torch.tanh(self.a(x)))


def cosine(step, total, peak):
    return 0.5 * peak * (1 + math.cos(math.pi * step / total))


def main():
    torch.manual_seed(0)
    net = nn.Sequential(*(Expert() for _ in range(16)), nn.Linear(32, 1))
    opt = SignMomentum(net.parameters(), lr=1e-3)
    update = torch.compile(opt.apply)

    x = torch.randn(64, 32)
    y = torch.sin(x.sum(1, keepdim=True))
    total = 260

    def train_one(step):
        for group in opt.param_groups:
            group["lr"].fill_(cosine(step, total, 1e-3))
        loss = nn.functional.mse_loss(net(x), y)
        for p in net.parameters():
            p.grad = None
        loss.backward()
        update()
        return loss.detach()

    for _ in range(4):
        train_one(0)
    gaps, best = [], float("inf")
    for step in range(total):
        t0 = time.perf_counter()
        loss = train_one(step)
        gaps.append(time.perf_counter() - t0)
        if step % 50 == 0:
            best = min(best, loss.item())
            print(f"step {step:3d} lr {opt.param_groups[0]['lr'].item():.2e} best {best:.4f}")
    gaps.sort()
    print(f"median step {gaps[len(gaps) // 2] * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
