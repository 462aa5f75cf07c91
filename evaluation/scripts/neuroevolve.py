"""Evolve small networks; what wins is copied and shaken."""
import argparse
import copy
import random
from dataclasses import dataclass
from typing import Callable

import torch
from torch import nn


class Brain(nn.Module):
    def __init__(self, senses, hidden, memory):
        super().__init__()
        self.sense = nn.Linear(senses, hidden)
        self.remember = nn.Linear(hidden, memory)
        self.act = nn.Linear(memory, 3)

    def forward(self, world):
        h = torch.tanh(self.sense(world))
        h = h * torch.sigmoid(h) + torch.sin(3 * h) * torch.exp(-h.square())
        m = torch.erf(self.remember(h))
        return self.act(m * torch.cos(m) + torch.log1p(m.square()))


@dataclass
class Creature:
    brain: Brain
    think: Callable
    fitness: float = float("-inf")


def born(brain):
    return Creature(brain, torch.compile(brain))


def shaken(parent, strength):
    brain = copy.deepcopy(parent.brain)
    for weight in brain.parameters():
        weight.add_(torch.randn_like(weight), alpha=strength)
    return born(brain)


@torch.inference_mode()
def evolve(args):
    rng = random.Random(args.seed)
    world = torch.randn(args.trials, 20)
    wanted = torch.stack([world[:, 0].sin(), world[:, 1] * world[:, 2], world[:, 3].tanh()], 1)
    tribe = [
        born(Brain(20, rng.randrange(96, 320), rng.randrange(32, 128))) for _ in range(args.tribe)
    ]
    for generation in range(args.generations):
        for creature in tribe:
            creature.fitness = -(creature.think(world) - wanted).square().mean().item()
        tribe.sort(key=lambda creature: creature.fitness, reverse=True)
        half = len(tribe) // 2
        tribe[half:] = [shaken(parent, 0.02) for parent in tribe[:half]]
        if generation % 20 == 0:
            print(generation, round(tribe[0].fitness, 4))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--generations", type=int, default=1500)
    parser.add_argument("--tribe", type=int, default=24)
    parser.add_argument("--trials", type=int, default=512)
    parser.add_argument("--seed", type=int, default=1)
    evolve(parser.parse_args())
