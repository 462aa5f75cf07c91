"""Ship-lock scheduling costs: a new plan object, new lambdas and fresh dictionaries at every step."""
import os
from functools import partial

import torch

STEPS = int(os.environ.get("STEPS", "30000"))
SHIPS, SLOTS = 3600, 128


class Plan:
    """Made anew for each planning round."""

    def __init__(self, arrival, draught, rules):
        self.arrival = arrival
        self.draught = draught
        self.rules = rules
        self.notes = {"round": None}

    @property
    def slack(self):
        t = torch.linspace(0.0, 1.0, SLOTS)
        return t[None, :] - self.arrival[:, None]

    @torch.compile
    def cost(self, squash, **terms):
        slack = self.slack
        early = (-slack).clamp(min=0.0)
        late = slack.clamp(min=0.0)
        total = torch.zeros_like(slack)
        for name in sorted(terms):
            total = total + terms[name](early, late)
        for rule in self.rules:
            total = rule(total, self.draught[:, None])
        return squash(total).sum(1)


def depth_rule(total, draught, margin):
    return total + (draught - margin).clamp(min=0.0) * 0.5 + 0.01 * total * draught


def queue_rule(total, draught):
    return torch.where(draught > 0.7, total * 1.2, total * 0.95)


def new_plan(gen, margin):
    arrival = torch.rand(SHIPS, generator=gen)
    draught = torch.rand(SHIPS, generator=gen)
    return Plan(arrival, draught, [partial(depth_rule, margin=margin), queue_rule])


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(2)
    margin = torch.tensor(0.6)
    knob = torch.tensor(1.0)
    every = max(1, STEPS // 20)
    mean = 0.0
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            plan = new_plan(gen, margin)
            knob.fill_(1.0 + 0.1 * (step % 7))
            terms = {
                "wait": lambda early, late: late * knob + 0.2 * late * late,
                "idle": lambda early, late: 0.5 * early + (early * early - 0.1).abs(),
            }
            cost = plan.cost(lambda v: v / (1.0 + 0.1 * v.abs()), **terms)
            mean = 0.99 * mean + 0.01 * cost.min().item()
            if step % every == 0:
                print(f"step {step}  best ship {int(cost.argmin())}  mean best {mean:.4f}")


if __name__ == "__main__":
    main()
