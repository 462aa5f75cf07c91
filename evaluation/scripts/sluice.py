"""Gate control of an irrigation canal: random search over gate settings while the demand profile moves."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "12000"))
PLANS, REACHES, HOURS = 512, 24, 16


class Demand:
    """Water demand; the season moves on a little with every planning round."""

    def __init__(self):
        self.base = torch.linspace(0.6, 1.4, REACHES)
        self.season = 0.0

    def move(self, amount):
        self.season = (self.season + amount) % 1.0


demand = Demand()


@torch.compiler.assume_constant_result
def profile():
    swing = 1.0 + 0.5 * torch.sin(torch.tensor(6.2832 * demand.season))
    return demand.base * swing


def reach_loss(level, gate, want):
    flow = torch.sqrt(level.clamp(min=1e-3)) * torch.sigmoid(gate)
    short = (want - flow).clamp(min=0.0)
    spill = (level - 2.0).clamp(min=0.0)
    return flow, short * short + 0.3 * spill * spill


@torch.compile
def simulate(level, gates):
    want = profile()
    cost = torch.zeros(PLANS)
    for h in range(HOURS):
        flow, loss = reach_loss(level, gates[:, h], want)
        inflow = torch.cat([torch.ones(PLANS, 1), flow[:, :-1]], 1)
        level = level + 0.2 * (inflow - flow)
        cost = cost + loss.sum(1)
    return cost


def propose(best, gen, width):
    noise = torch.randn(PLANS, HOURS, REACHES, generator=gen)
    plans = best + width * noise
    plans[0] = best
    return plans


def main():
    torch.manual_seed(0)
    gen = torch.Generator().manual_seed(4)
    best = torch.zeros(HOURS, REACHES)
    level = torch.ones(PLANS, REACHES)
    every = max(1, STEPS // 20)
    with torch.no_grad():
        for step in range(1, STEPS + 1):
            demand.move(0.0025)
            plans = propose(best, gen, 0.1)
            cost = simulate(level, plans)
            pick = cost.argmin()
            best = plans[pick] * 0.995
            if step % every == 0:
                print(f"step {step}  season {demand.season:.3f}  cost {cost[pick].item():.4f}")


if __name__ == "__main__":
    main()
