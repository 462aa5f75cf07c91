"""Learns the entities of a knowledge graph from its triples and from made-up ones."""

import argparse
import random

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda")
ENTITIES = 20_000
RELATIONS = 48


class Facts:
    def __init__(self, count: int, seed: int) -> None:
        dice = random.Random(seed)
        self.dice = dice
        self.triples = [
            (dice.randrange(ENTITIES), dice.randrange(RELATIONS), dice.randrange(ENTITIES)) for _ in range(count)
        ]
        self.known = set(self.triples)

    def corrupted(self, head: int, relation: int) -> int:
        while True:
            tail = self.dice.randrange(ENTITIES)
            if (head, relation, tail) not in self.known:
                return tail

    def batch(self, size: int, negatives: int) -> tuple[torch.Tensor, torch.Tensor]:
        true = self.dice.sample(self.triples, size)
        false = [[self.corrupted(head, relation) for _ in range(negatives)] for head, relation, _ in true]
        return torch.tensor(true, device=device), torch.tensor(false, device=device)


class Embedding(nn.Module):
    def __init__(self, size: int = 256) -> None:
        super().__init__()
        self.entities = nn.Embedding(ENTITIES, size)
        self.relations = nn.Embedding(RELATIONS, size)
        self.bend = nn.Sequential(nn.Linear(size, size), nn.GELU(), nn.Linear(size, size))

    def forward(self, true: torch.Tensor, tails: torch.Tensor) -> torch.Tensor:
        head, relation, tail = true.unbind(1)
        asked = self.bend(self.entities(head) * self.relations(relation))
        good = (asked * self.entities(tail)).sum(-1)
        bad = (asked[:, None] * self.entities(tails)).sum(-1)
        spread = bad.detach().std().item()
        weight = F.softmax(bad / (1.0 + spread), dim=1).detach()
        return -(F.logsigmoid(good) + (weight * F.logsigmoid(-bad)).sum(1)).mean()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--negatives", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    facts = Facts(100_000, seed=11)
    model = Embedding().to(device)
    objective = torch.compile(model)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.05)
    for step in range(args.steps):
        loss = objective(*facts.batch(512, args.negatives))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 1000 == 999:
            print(step + 1, loss.item())


if __name__ == "__main__":
    main()
