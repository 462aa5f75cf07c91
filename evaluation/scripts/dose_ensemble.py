"""Eight small models of how a tumour responds to a dose, trained side by side for an honest error bar."""
import argparse

import torch
import torch.nn as nn
from torch.func import functional_call, stack_module_state, vmap


class DoseCurve(nn.Module):
    def __init__(self, markers=6, width=48):
        super().__init__()
        self.slope = nn.Linear(markers, width)
        self.middle = nn.Linear(markers, width)
        self.share = nn.Parameter(torch.rand(width) / width)

    def forward(self, dose, markers):
        steep = nn.functional.softplus(self.slope(markers))
        part = torch.sigmoid(steep * (torch.log1p(dose)[:, None] - self.middle(markers)))
        return torch.tanh((part * torch.exp(-0.1 * steep) * self.share).sum(-1))


def patients(count, generator):
    while True:
        dose, markers = 10 * torch.rand(count, generator=generator), torch.randn(count, 6, generator=generator)
        yield dose, markers, torch.sigmoid(dose - 4 + markers[:, 0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=8000)
    args = parser.parse_args()
    torch.manual_seed(0)
    members = [DoseCurve() for _ in range(8)]
    weights, _ = stack_module_state(members)
    plan = members[0]

    @torch.compile(fullgraph=True)
    def misfit(weights, dose, markers, answer):
        guess = vmap(lambda one: functional_call(plan, one, (dose, markers)))(weights)
        return (guess - answer).square().mean(-1).sum(), guess.detach().std(0).mean()

    optimizer = torch.optim.SGD(weights.values(), lr=0.05)
    source = patients(2048, torch.Generator().manual_seed(2))
    for step in range(args.steps):
        loss, doubt = misfit(weights, *next(source))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 250 == 249:
            print(f"step {step + 1}: misfit {loss.item() / 8:.4f}, doubt {doubt.item():.4f}")


if __name__ == "__main__":
    main()
