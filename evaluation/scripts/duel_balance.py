"""Balances two armies of a strategy game: every proposal is judged on the same dice."""
import argparse
import contextlib
from dataclasses import dataclass

import torch


@dataclass
class Rules:
    fights: int = 4096
    soldiers: int = 24
    rounds: int = 10
    seed: int = 77


@contextlib.contextmanager
def same_dice(seed):
    state = torch.get_rng_state()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)


class Battlefield:
    def __init__(self, rules):
        self.rules = rules
        self.strength = torch.linspace(0.5, 1.5, rules.soldiers)

    def odds(self, proposal):
        attack, armour, speed, reach = proposal.unbind()
        red = torch.ones(self.rules.fights, self.rules.soldiers)
        blue = torch.ones(self.rules.fights, self.rules.soldiers)
        with same_dice(self.rules.seed):
            dice = torch.randperm(self.rules.fights)[:, None] / self.rules.fights
            for number in range(self.rules.rounds):
                luck = 0.5 + 0.5 * torch.sin((37 + 11 * number) * (dice + self.strength))
                hit = (0.5 + 3 * (luck - 0.5) + attack * self.strength - armour.sin()).clamp(0, 1)
                blow = hit * (1 + luck.square() * attack) * torch.sqrt(attack.square() + 0.1)
                answer = (1 - hit) * (1 + armour * luck) / (1 + speed * luck.square())
                blue = blue - 0.1 * blow * (1 + reach * blow) / (1 + blue.clamp(min=0).square())
                red = red - 0.1 * answer * (1 + reach * answer) / (1 + red.clamp(min=0).square())
        return torch.tanh(red.clamp(min=0).sum(1) - blue.clamp(min=0).sum(1)).mean()


class Designer:
    def __init__(self, rules, width=0.15):
        self.field = Battlefield(rules)
        self.odds = torch.compile(self.field.odds)
        self.best, self.gap, self.width = torch.rand(4), torch.tensor(9.0), width

    def propose(self):
        proposal = (self.best + self.width * torch.randn(4)).clamp(0.05, 3)
        gap = self.odds(proposal).abs()
        better = gap < self.gap
        self.best = torch.where(better, proposal, self.best)
        self.gap = torch.where(better, gap, self.gap)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--proposals", type=int, default=9000)
    parser.add_argument("--fights", type=int, default=4096)
    args = parser.parse_args()
    torch.manual_seed(1)
    designer = Designer(Rules(fights=args.fights))
    with torch.inference_mode():
        for _ in range(args.proposals):
            designer.propose()
    print("army", [round(value, 3) for value in designer.best.tolist()], f"gap {float(designer.gap):.5f}")


if __name__ == "__main__":
    main()
