import argparse

import torch

from arm import Planner
from arm.safety import slow_down


class SlottedPlanner(Planner):
    """What was lies in one tensor, which never grows; slots not yet used weigh nothing."""

    def __init__(self, joints, batch=256, slots=40):
        super().__init__(joints)
        self.past = torch.zeros(slots, batch, joints)
        self.weights = torch.zeros(slots, 1, 1)
        self.used = 0

    def forget(self):
        self.weights.zero_()
        self.used = 0

    def remember(self, state):
        self.past[self.used] = state
        self.weights[self.used] = 1 / (self.used + 2)
        self.used += 1

    def plan(self, state):
        pull = torch.tanh(state * self.stiffness) * torch.exp(-state.square())
        pull = pull + (torch.sin(self.past - state) * self.weights).sum(0)
        return slow_down(torch.sigmoid(pull) - 0.5 + 0.9 * state)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=40000)
    args = parser.parse_args()
    torch.manual_seed(0)
    planner = SlottedPlanner(joints=96)
    compiled = torch.compile(planner.plan)
    state = torch.randn(256, 96)
    with torch.no_grad():
        for move in range(args.moves):
            if move % 40 == 0:
                planner.forget()
            new = compiled(state)
            planner.remember(state)
            state = new
    print(state.norm().item())


if __name__ == "__main__":
    main()
