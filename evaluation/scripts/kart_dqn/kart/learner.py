import copy

import torch
import torch.nn as nn


def critic(senses, actions, width=64):
    return nn.Sequential(nn.Linear(senses, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, actions))


class Learner:
    def __init__(self, senses, actions, discount=0.97):
        self.net = critic(senses, actions)
        self.slow = copy.deepcopy(self.net).requires_grad_(False)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=1e-3)
        self.discount = discount
        self.loss = torch.compile(self.loss)

    def loss(self, before, action, reward, after):
        best = self.net(after).argmax(-1, keepdim=True)
        target = reward + self.discount * self.slow(after).gather(1, best).squeeze(1)
        error = self.net(before).gather(1, action[:, None]).squeeze(1) - target.detach()
        loss = torch.log(torch.cosh(error)).mean()
        return loss, error.detach().abs(), action.unique().numel()

    def update(self, *moments):
        loss, surprise, used = self.loss(*moments)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.slow.parameters()), list(self.net.parameters()), 0.01)
        return surprise, used
