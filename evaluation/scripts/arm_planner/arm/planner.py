import torch

from .safety import slow_down


class Planner:
    def __init__(self, joints):
        self.stiffness = torch.rand(joints)
        self.past = {}

    def forget(self):
        self.past.clear()

    def plan(self, state):
        pull = torch.tanh(state * self.stiffness) * torch.exp(-state.square())
        for age, old in self.past.items():
            pull = pull + torch.sin(old - state) / (age + 2)
        self.past[len(self.past)] = state
        return slow_down(torch.sigmoid(pull) - 0.5 + 0.9 * state)
