"""Fit formation energies of crystals from hand-made descriptors."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "2200"))
BATCH = 256
FEATS = 192
LAYERS = 40
DEV = "cuda"


class EnergyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(FEATS, FEATS)
        self.layers = nn.ModuleList([nn.Linear(FEATS, FEATS) for _ in range(LAYERS)])
        self.head = nn.Linear(FEATS, 1)

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = x + 0.1 * torch.tanh(layer(x))
        return self.head(x).squeeze(-1)


@torch.compile(dynamic=False)
def nudge(p, g, state, lr):
    m, v, slow = state["m"], state["v"], state["slow"]
    g = g - g.mean()
    g = g / (g.norm() + 1e-6) * torch.clamp(p.norm() + 1e-3, max=1.0)
    m.mul_(0.9).add_(g, alpha=0.1)
    v.mul_(0.99).addcmul_(g, g, value=0.01)
    direction = m / (v.sqrt() + 1e-8)
    agree = (direction * g > 0).to(p.dtype)
    direction = direction * agree * (agree.numel() / (agree.sum() + 1))
    trust = p.norm() / (direction.norm() + 1e-8)
    trust = torch.where(torch.isfinite(trust), trust.clamp(0.01, 10.0), torch.ones_like(trust))
    p.mul_(1 - 1e-4).sub_(direction * trust * lr)
    slow.lerp_(p, 0.02)
    p.lerp_(slow, 0.005)


class CautiousLamb(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                    state["v"] = torch.zeros_like(p)
                    state["slow"] = p.detach().clone()
                nudge(p, p.grad, state, group["lr"])


def main():
    torch.manual_seed(5)
    torch.set_float32_matmul_precision("high")
    net = EnergyNet().to(DEV)
    net.compile()
    opt = CautiousLamb(net.parameters(), lr=1e-3)
    x = torch.randn(64, BATCH, FEATS, device=DEV)
    y = torch.sin(x[..., :8].sum(-1))
    running = torch.zeros((), device=DEV)
    t0 = time.time()
    for step in range(STEPS):
        k = step % 64
        loss = nn.functional.mse_loss(net(x[k]), y[k])
        loss.backward()
        opt.step()
        opt.zero_grad()
        running.lerp_(loss.detach(), 0.05)
        if step % 200 == 0:
            print(f"step {step} loss {running.item():.4f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
