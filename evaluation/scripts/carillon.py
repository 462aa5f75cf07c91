"""Bell-tower tuning: partials of bells fitted with parametrised weights and a compiled optimizer."""
import logging
import os
import warnings

import torch
import torch.nn.utils.parametrize as P
from torch import nn

STEPS = int(os.environ.get("STEPS", "18000"))
BELLS, PARTIALS, WIDTH = 512, 24, 64
log = logging.getLogger("carillon")

torch._dynamo.config.suppress_errors = True
torch._dynamo.config.recompile_limit = 3


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).T


class Bounded(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, w):
        return self.limit * torch.tanh(w / self.limit)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.inlet = nn.Linear(PARTIALS, WIDTH)
        self.couple = nn.Linear(WIDTH, WIDTH, bias=False)
        P.register_parametrization(self.couple, "weight", Symmetric())
        P.register_parametrization(self.couple, "weight", Bounded(0.5))
        self.out = nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, PARTIALS))

    def forward(self, partials):
        x = self.inlet(partials)
        for _ in range(4):
            y = self.couple(x)
            x = x + 0.2 * (y.clamp(-2, 2) * torch.sigmoid(x) - 0.1 * y.abs() * y)
        return self.out(x)


@torch.compiler.disable
def report(step, loss, model):
    w = model.couple.weight
    log.info("coupling %s", w.norm().item())
    print(f"step {step}  detune {loss.item():.6f}  asymmetry {(w - w.T).abs().max().item():.1e}")


def main():
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    model = Tower()
    predict = torch.compile(model)
    rate = torch.tensor(2e-3)
    opt = torch.optim.Adam(model.parameters(), lr=rate, foreach=False)
    update = torch.compile(opt.step)
    gen = torch.Generator().manual_seed(1)
    bank = [torch.randn(BELLS, PARTIALS, generator=gen) for _ in range(6)]
    every = max(1, STEPS // 20)
    for step in range(1, STEPS + 1):
        x = bank[step % 6]
        loss = (predict(x) - x.roll(1, 1)).square().mean()
        opt.zero_grad(set_to_none=step == 1)
        loss.backward()
        rate.mul_(0.9997)
        update()
        if step % every == 0:
            report(step, loss, model)


if __name__ == "__main__":
    main()
