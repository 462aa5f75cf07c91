"""Model-predictive control of one cart, step by step."""
import argparse

import torch


class Cart:
    def __init__(self):
        self.state = torch.tensor([0.5, 0.0])
        self.plan = torch.compile(self._plan)

    def _plan(self, state):
        x, v = state[0], state[1]
        force = -(2.0 * x + 1.5 * v)
        force = torch.where(force.abs() > 1.0, force.sign(), force)
        return torch.stack([x + 0.05 * v, v + 0.05 * force])

    def run(self, ticks):
        for _ in range(ticks):
            self.state = self.plan(self.state)
        return self.state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ticks", type=int, default=1800000)
    args = parser.parse_args()
    torch.manual_seed(0)
    with torch.no_grad():
        print(Cart().run(args.ticks))


if __name__ == "__main__":
    main()
