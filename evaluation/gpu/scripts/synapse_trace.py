"""Plays recorded stimuli to a column of spiking layers and counts what fires."""

import argparse

import torch
import torch.nn as nn

device = torch.device("cuda")


class Layer(nn.Module):
    def __init__(self, cells: int, leak: float) -> None:
        super().__init__()
        self.synapses = nn.Linear(cells, cells)
        self.leak = leak

    def forward(self, spikes: torch.Tensor, potential: torch.Tensor) -> torch.Tensor:
        potential.mul_(self.leak).add_(self.synapses(spikes))
        fired = potential > 1.0
        potential.masked_fill_(fired, 0.0)
        return fired.to(spikes.dtype) + 0.05 * torch.tanh(potential)


class Column(nn.Module):
    def __init__(self, layers: int, cells: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(cells, 0.8 + 0.01 * n) for n in range(layers))

    def forward(self, stimulus: torch.Tensor, potentials: list[torch.Tensor]) -> torch.Tensor:
        spikes = stimulus
        for layer, potential in zip(self.layers, potentials):
            spikes = layer(spikes, potential)
        return spikes


def rest(layers: int, animals: int, cells: int) -> list[torch.Tensor]:
    return [torch.zeros(animals, cells, device=device, dtype=torch.half) for _ in range(layers)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=600_000)
    parser.add_argument("--layers", type=int, default=18)
    parser.add_argument("--cells", type=int, default=256)
    args = parser.parse_args()

    torch.manual_seed(1)
    column = Column(args.layers, args.cells).to(device, torch.half).eval()
    column = torch.compile(column, mode="reduce-overhead")
    stimuli = torch.randn(32, 64, args.cells, device=device, dtype=torch.half)
    potentials = rest(args.layers, 64, args.cells)
    rates = torch.zeros(args.cells, device=device)
    with torch.no_grad():
        for tick in range(args.ticks):
            rates += column(stimuli[tick % 32], potentials).mean(0)
    print("mean rate", (rates / args.ticks).mean().item())


if __name__ == "__main__":
    main()
