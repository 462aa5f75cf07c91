"""Stock trajectories for a network of bicycle depots.

For a set of demand scenarios we simulate half-hour slots, find the lowest
stock reached in every depot and raise the opening stock where it is needed.
"""
import os
import numpy as np
import torch

torch.set_num_threads(1)

STEPS = int(os.environ.get("STEPS", "1500"))

SLOTS = 48 * 42
DEPOTS = 1024
CAPACITY = 40.0


def load_history(seed):
    rng = np.random.default_rng(seed)
    t = np.arange(SLOTS)[:, None]
    phase = rng.uniform(0, 2 * np.pi, size=(1, DEPOTS))
    daily = np.sin(2 * np.pi * t / 48 + phase)
    weekly = 0.3 * np.sin(2 * np.pi * t / 336 + 2 * phase)
    flow = 0.8 * daily + weekly + rng.normal(0, 0.6, size=(SLOTS, DEPOTS))
    return flow.astype(np.float32)


def scenarios(n):
    return [torch.from_numpy(load_history(100 + k)) for k in range(n)]


def stock_path(flow, opening, shrink):
    moves = flow * (1.0 - shrink)
    return opening + torch.cumsum(moves, dim=0)


def evaluate(flow, opening, shrink):
    path = stock_path(flow, opening, shrink)
    short = torch.relu(-path).sum(0)
    over = torch.relu(path - CAPACITY).sum(0)
    lowest = path.amin(0)
    return short, over, lowest


evaluate = torch.compile(evaluate)


class Planner:
    def __init__(self):
        self.opening = torch.full((DEPOTS,), CAPACITY / 2)
        self.shrink = torch.tensor(0.02)
        self.lr = 0.05

    @torch.no_grad()
    def revise(self, flow):
        short, over, lowest = evaluate(flow, self.opening, self.shrink)
        push = torch.where(short > over, -lowest.clamp(max=0.0), -0.1 * over.sqrt())
        self.opening.add_(self.lr * push).clamp_(0.0, CAPACITY)
        return short.mean() + over.mean()


def report(step, cost, planner):
    o = planner.opening
    print(
        f"round {step:5d}  cost {float(cost):9.3f}  "
        f"opening mean {o.mean():.2f} min {o.min():.2f} max {o.max():.2f}"
    )


def main():
    planner = Planner()
    pool = scenarios(5)
    cost = None
    for step in range(STEPS):
        cost = planner.revise(pool[step % len(pool)])
        if step % 400 == 0:
            report(step, cost, planner)
    report(STEPS, cost, planner)


if __name__ == "__main__":
    main()
