"""Inverse-dynamics ensemble for a 7-joint arm, trained with a home-made trust-ratio optimizer."""
import os
import torch
from torch import nn

JOINTS, HEADS, WIDTH, BATCH = 7, 5, 24, 64
STEPS = int(os.environ.get("STEPS", "6000"))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3 * JOINTS, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.c = nn.Linear(WIDTH, JOINTS)
        self.log_scale = nn.Parameter(torch.zeros(JOINTS))

    def forward(self, x):
        h = torch.tanh(self.a(x))
        h = h + nn.functional.gelu(self.b(self.norm(h)))
        return self.c(h) * torch.exp(self.log_scale)


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(Head() for _ in range(HEADS))

    def forward(self, x, torque):
        out = torch.stack([head(x) for head in self.heads])
        spread = out.std(0).mean()
        return (out - torque).square().mean(), spread


def trust_step(params, grads, first, second, lr, b1, b2, decay):
    for p, g, m, v in zip(params, grads, first, second):
        m.mul_(b1).add_(g, alpha=1 - b1)
        v.mul_(b2).addcmul_(g, g, value=1 - b2)
        update = m / (v.sqrt() + 1e-6) + decay * p
        ratio = (p.norm() + 1e-3) / (update.norm() + 1e-3)
        p.sub_(update * ratio.clamp(0.01, 10.0) * lr)


class Trust(torch.optim.Optimizer):
    def __init__(self, params, lr=3e-3, betas=(0.9, 0.99), decay=1e-4):
        super().__init__(params, dict(lr=lr, betas=betas, decay=decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params = group["params"]
            for p in params:
                if not self.state[p]:
                    self.state[p] = {"m": torch.zeros_like(p), "v": torch.zeros_like(p)}
            trust_step(params, [p.grad for p in params], [self.state[p]["m"] for p in params],
                       [self.state[p]["v"] for p in params], group["lr"], *group["betas"], group["decay"])


def arm(gen, n):
    q, dq, ddq = torch.randn(3, n, JOINTS, generator=gen)
    load = torch.linspace(3, 0.5, JOINTS)
    gravity = load * torch.sin(q.cumsum(-1))
    torque = load * ddq + gravity + 0.4 * torch.sign(dq) + 0.1 * dq * dq.roll(1, -1)
    return torch.cat((q, dq, ddq), -1), torque / 3


def main():
    torch.manual_seed(40)
    gen = torch.Generator().manual_seed(41)
    x_all, t_all = arm(gen, 16384)
    model = Ensemble()
    train = torch.compile(model)
    opt = Trust(model.parameters())
    for step in range(STEPS):
        rows = torch.randint(0, len(x_all), (BATCH,), generator=gen)
        loss, spread = train(x_all[rows], t_all[rows])
        opt.zero_grad(set_to_none=False)
        loss.backward()
        opt.step()
        if step % 300 == 0:
            print(f"step {step:5d}  mse {loss.item():.4f}  ensemble spread {spread.item():.4f}")
    x, t = arm(gen, 2048)
    with torch.no_grad():
        print("held out", round(model(x, t)[0].item(), 4))


if __name__ == "__main__":
    main()
