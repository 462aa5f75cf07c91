import torch
import torch.nn as nn
import torch.nn.functional as F


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.a = nn.Conv2d(channels, channels, 3, padding=1)
        self.b = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return F.relu(x + self.b(F.relu(self.a(x))))


class Tower(nn.Module):
    def __init__(self, channels, depth):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        self.body = nn.Sequential(*(Residual(channels) for _ in range(depth)))
        self.policy = nn.Conv2d(channels, 1, 1)
        self.value = nn.Linear(channels, 1)

    def forward(self, planes):
        h = self.body(F.relu(self.stem(planes)))
        policy = self.policy(h).flatten(1).masked_fill(planes[:, 2].flatten(1) == 0, -1e9)
        return policy.softmax(1), torch.tanh(self.value(h.mean((2, 3)))).squeeze(1)


class Evaluator:
    def __init__(self, channels, depth):
        self.tower = torch.compile(Tower(channels, depth).eval())

    @torch.inference_mode()
    def __call__(self, planes):
        return self.tower(planes)

    def warm_up(self, planes):
        for _ in range(3):
            self(planes)
        torch.compiler.set_stance("eager_on_recompile")
