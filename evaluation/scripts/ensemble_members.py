"""Deep ensemble for regression uncertainty: members share an architecture, differ in their init."""
import copy
import time

import torch
from torch import nn


class GaussianRBF(nn.Module):
    def __init__(self, n, low=-4.0, high=4.0):
        super().__init__()
        self.register_buffer("centers", torch.linspace(low, high, n))
        self.log_width = nn.Parameter(torch.zeros(n))

    def forward(self, x):
        d = x.unsqueeze(-1) - self.centers
        return torch.exp(-d.square() * torch.exp(self.log_width))


class Member(nn.Module):
    def __init__(self, inputs=24, basis=32):
        super().__init__()
        self.rbf = GaussianRBF(basis)
        self.coef = nn.Parameter(torch.randn(inputs, basis) * 0.1)
        self.mix = nn.Linear(inputs, 32)
        self.mu = nn.Linear(32, 1)
        self.logvar = nn.Linear(32, 1)

    def forward(self, x):
        phi = self.rbf(x)
        wave = torch.sin(phi * 3.0) * phi + torch.tanh(phi)
        h = (wave * self.coef).sum(-1)
        h = nn.functional.mish(self.mix(h))
        return self.mu(h).squeeze(-1), self.logvar(h).squeeze(-1).clamp(-6, 4)


def reinit(module, seed):
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.add_(0.05 * torch.randn(p.shape, generator=g))
    return module


def build(n_members):
    base = Member()
    base.compile()
    return [reinit(copy.deepcopy(base), 100 + i) for i in range(n_members)]


def nll(mu, logvar, y):
    return 0.5 * (logvar + (y - mu).square() * torch.exp(-logvar)).mean()


def target(x):
    return torch.sin(2 * x[:, 0]) + 0.3 * x[:, 1] * x[:, 2] + 0.1 * torch.randn(len(x))


def main():
    torch.manual_seed(0)
    members = build(3)
    opts = [torch.optim.Adam(m.parameters(), lr=3e-3) for m in members]
    data = torch.randn(20000, 24)
    y = target(data)

    def one_round():
        total = 0.0
        for m, o in zip(members, opts):
            idx = torch.randint(0, len(data), (384,))
            mu, lv = m(data[idx])
            loss = nll(mu, lv, y[idx])
            o.zero_grad()
            loss.backward()
            o.step()
            total = total + loss.detach()
        return total / len(members)

    for _ in range(5):
        one_round()

    spans = []
    for r in range(150):
        t = time.perf_counter()
        avg = one_round()
        spans.append(time.perf_counter() - t)
        if (r + 1) % 50 == 0:
            print(f"round {r + 1:4d}  nll {avg.item():.4f}")
    spans.sort()
    print(f"median round {spans[len(spans) // 2] * 1000:.2f} ms")


if __name__ == "__main__":
    main()
