import torch
from torch import nn


class Sense(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gain = nn.Parameter(torch.linspace(0.5, 1.5, size))

    def forward(self, state, beacon):
        apart = beacon - self.gain * state
        return torch.tanh(apart) + 0.3 * torch.sin(2 * apart)


class Flock(nn.Module):
    def forward(self, x):
        middle = x.mean(0, keepdim=True)
        return x + torch.exp(-(x - middle).square()) * (middle - x)


class Avoid(nn.Module):
    def __init__(self):
        super().__init__()
        self.near = nn.Parameter(torch.tensor(0.4))

    def forward(self, x):
        close = torch.sigmoid(6 * (self.near - x.abs()))
        return x + close * torch.cos(x) * torch.log1p(x.square())


class Thrust(nn.Module):
    def forward(self, x):
        push = torch.atan(x) * torch.sigmoid(x)
        return torch.where(push > 0.0, push * torch.exp(-0.2 * push), 0.5 * push)


class Pilot(nn.Module):
    def __init__(self, size=64):
        super().__init__()
        self.sense, self.flock, self.avoid, self.thrust = Sense(size), Flock(), Avoid(), Thrust()
        self.limit = nn.Parameter(torch.full((size,), 2.0))

    def forward(self, state, beacon):
        x = self.sense(state, beacon)
        x = self.flock(x)
        x = self.avoid(x)
        x = self.thrust(x)
        return self.limit * torch.tanh(x / self.limit) + state * torch.exp(-x.square())
