"""Portfolio loss distribution under a Gaussian copula with Weibull-like marginals."""
import os
import math
import torch

torch.set_num_threads(1)
torch.manual_seed(5)

STEPS = int(os.environ.get("STEPS", "3000"))
PATHS, NAMES = 8192, 48


def to_normal(u):
    return math.sqrt(2.0) * torch.erfinv(2.0 * u - 1.0)


def scenario_loss(u, chol, scale, notional):
    z = to_normal(u.clamp(1e-5, 1.0 - 1e-5))
    y = z @ chol.t()
    p = torch.sigmoid(1.702 * y)
    severity = scale * (-torch.log1p(-p.clamp(max=0.99999))).sqrt()
    loss = (severity * notional).sum(dim=1)
    return loss.mean(), loss.square().mean()


scenario_loss = torch.compile(scenario_loss)

factor = torch.randn(NAMES, 4) * 0.6
cov = factor @ factor.t() + torch.eye(NAMES)
std = cov.diagonal().sqrt()
chol = torch.linalg.cholesky(cov / std[:, None] / std[None, :])
scale = torch.rand(NAMES) + 0.5
notional = torch.rand(NAMES)
draws = [torch.rand(PATHS, NAMES) for _ in range(4)]

m1 = m2 = 0.0
with torch.no_grad():
    for step in range(STEPS):
        a, b = scenario_loss(draws[step % len(draws)], chol, scale, notional)
        m1 = 0.99 * m1 + 0.01 * a
        m2 = 0.99 * m2 + 0.01 * b

print(f"expected loss {float(m1):.5f}  std {float((m2 - m1 * m1).clamp(min=0).sqrt()):.5f}")
