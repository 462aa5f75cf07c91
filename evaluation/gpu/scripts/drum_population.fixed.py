"""Evolve small controllers for a modal drum synthesiser."""
import os

import torch
from torch import nn

DEVICE = torch.device("cuda")
STEPS = int(os.environ.get("STEPS", "1500"))
POP, ELITE, WIDTH, DEPTH = 256, 32, 256, 10


class Controller(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(16, WIDTH)
        self.mid = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
        self.out = nn.Linear(WIDTH, 24)

    def forward(self, strike):
        h = torch.tanh(self.inp(strike))
        for layer in self.mid:
            h = h + 0.3 * torch.sin(layer(h))
        return self.out(h)


def modes(strike):
    k = torch.arange(1, 25, device=strike.device)
    return torch.exp(-strike[:, :1].abs() * k / 12) * torch.cos(strike[:, 1:2] * k)


def newborn(template, parent=None, sigma=0.02):
    source = template if parent is None else parent
    return [w + sigma * torch.randn_like(w) for w in source]


def install(net, genes):
    for param, gene in zip(net.parameters(), genes):
        param.data.copy_(gene)


@torch.no_grad()
def main():
    torch.manual_seed(11)
    torch.set_float32_matmul_precision("high")
    net = Controller().to(DEVICE)
    template = [p.detach().clone() for p in net.parameters()]
    population = [newborn(template) for _ in range(POP)]
    strikes = torch.randn(512, 16, device=DEVICE)
    target = modes(strikes)
    fitness = torch.zeros(POP, device=DEVICE)
    play = torch.compile(net, mode="reduce-overhead")

    generation = 0
    for step in range(STEPS):
        slot = step % POP
        install(net, population[slot])
        error = (play(strikes) - target).square().mean()
        fitness[slot].copy_(error)
        if slot == POP - 1:
            order = fitness.argsort().tolist()
            for rank, loser in enumerate(order[ELITE:]):
                population[loser] = newborn(template, population[order[rank % ELITE]])
            generation += 1
        if step % 100 == 99:
            print(f"step {step + 1} generation {generation} latest error {error.item():.5f}")
    print("best", round(fitness[: min(STEPS, POP)].min().item(), 5))


main()
