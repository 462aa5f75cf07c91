"""Differentially private training on a clinic's records: per-sample gradients, clip, add noise."""
import os
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

RECORDS, FEATURES, BATCH, CLIP, SIGMA = 2650, 40, 128, 1.0, 0.8
STEPS = int(os.environ.get("STEPS", "500"))


class RiskNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2 = nn.Linear(FEATURES, 64), nn.Linear(64, 48)
        self.n1 = nn.LayerNorm(64)
        self.out = nn.Linear(48, 1)

    def forward(self, x):
        h = nn.functional.silu(self.n1(self.l1(x)))
        h = nn.functional.silu(self.l2(h))
        return self.out(h).squeeze(-1)


net = RiskNet()


def sample_loss(params, x, y):
    logit = functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)
    return nn.functional.binary_cross_entropy_with_logits(logit, y)


@torch.compile
def clipped_sum(params, x, y):
    per_sample = vmap(grad(sample_loss), in_dims=(None, 0, 0))(params, x, y)
    norm2 = sum(g.flatten(1).square().sum(1) for g in per_sample.values())
    scale = (CLIP / (norm2.sqrt() + 1e-6)).clamp_max(1.0)
    summed = {k: (g * scale.view(-1, *[1] * (g.dim() - 1))).sum(0) for k, g in per_sample.items()}
    return summed, (scale < 1).float().mean()


def records(gen):
    x = torch.randn(RECORDS, FEATURES, generator=gen)
    w = torch.randn(FEATURES, generator=gen) / FEATURES ** 0.5
    logit = 3 * (x @ w) + torch.sin(2 * x[:, 0]) * x[:, 1]
    return x, torch.bernoulli(torch.sigmoid(logit), generator=gen)


def epochs(x, y, gen):
    order = torch.randperm(len(x), generator=gen)
    for rows in order.split(BATCH):
        yield x[rows], y[rows]


def main():
    torch.manual_seed(50)
    gen = torch.Generator().manual_seed(51)
    x, y = records(gen)
    params = {k: p.detach().clone() for k, p in net.named_parameters()}
    momentum = {k: torch.zeros_like(p) for k, p in params.items()}
    for epoch in range(STEPS):
        clipped = 0.0
        for bx, by in epochs(x, y, gen):
            summed, share = clipped_sum(params, bx, by)
            clipped = 0.9 * clipped + 0.1 * share.item()
            for k, g in summed.items():
                noisy = (g + SIGMA * CLIP * torch.randn(g.shape, generator=gen)) / len(bx)
                momentum[k].mul_(0.8).add_(noisy)
                params[k] = params[k] - 0.2 * momentum[k]
        if epoch % 25 == 0:
            logit = functional_call(net, params, (x,))
            acc = ((logit > 0) == (y > 0.5)).float().mean()
            print(f"epoch {epoch:3d}  accuracy {acc.item():.3f}  clipped {clipped:.2f}")


if __name__ == "__main__":
    main()
