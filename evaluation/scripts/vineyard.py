"""Per-plant gradients of a vine-growth model: functional transforms, conditional branch and mode switches."""
import os

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap

STEPS = int(os.environ.get("STEPS", "40000"))
PLANTS, WEEKS, WIDTH = 192, 20, 24


class Vine(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(WEEKS, WIDTH)
        self.mid = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, 1)
        self.drop = nn.Dropout(0.1)

    def forward(self, weather):
        x = torch.tanh(self.inp(weather))
        x = self.drop(x * torch.sigmoid(self.mid(x)) + 0.1 * x)
        return self.out(x).squeeze(-1)


torch.manual_seed(0)
vine = Vine()


def plant_loss(params, weather, sugar):
    r = functional_call(vine, params, (weather,)) - sugar
    return torch.log1p(r * r) + 0.1 * r.abs()


@torch.compile
def clipped(params, weather, sugar, limit):
    grads, losses = vmap(grad_and_value(plant_loss), in_dims=(None, 0, 0), randomness="different")(params, weather, sugar)
    norm = torch.sqrt(sum(g.flatten(1).square().sum(1) for g in grads.values()))
    scale = (limit / (norm + 1e-6)).clamp(max=1.0)
    mean = {k: torch.einsum("p,p...->...", scale, g) / PLANTS for k, g in grads.items()}
    limit = torch.cond(norm.median() > limit, lambda v: v * 1.01, lambda v: v * 0.99, (limit,))
    return mean, losses.mean(), limit


@torch.compile
def apply(params, grads, rate):
    return {k: p - rate * grads[k] for k, p in params.items()}


def field(seed):
    g = torch.Generator().manual_seed(seed)
    while True:
        w = torch.randn(PLANTS, WEEKS, generator=g)
        yield w, torch.sin(w[:, 0]) + 0.2 * w[:, 1:4].sum(1)


def main():
    params = {k: v.detach().clone() for k, v in vine.named_parameters()}
    limit = torch.tensor(1.0)
    rate = torch.tensor(0.1)
    every = max(1, STEPS // 20)
    for step, (weather, sugar) in zip(range(1, STEPS + 1), field(7)):
        vine.train(step % 4 != 0)
        grads, loss, limit = clipped(params, weather, sugar, limit)
        params = apply(params, grads, rate)
        if step % every == 0:
            print(f"step {step}  loss {loss.item():.4f}  clip {limit.item():.4f}")


if __name__ == "__main__":
    main()
