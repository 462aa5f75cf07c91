import torch
import torch.nn as nn

from .mixins import EvaluationMixin, LoopMixin, PrintMixin, TargetMixin


class QuantileNet(nn.Module):
    def __init__(self, state=24, actions=5, quantiles=40, width=160):
        super().__init__()
        self.shape = (actions, quantiles)
        self.body = nn.Sequential(
            nn.Linear(state, width), nn.Mish(), nn.Dropout(0.1), nn.Linear(width, width), nn.Mish()
        )
        self.head = nn.Linear(width, actions * quantiles)

    def forward(self, state):
        return self.head(self.body(state)).unflatten(-1, self.shape)


def quantile_huber(current, wanted, levels):
    gap = wanted.unsqueeze(1) - current.unsqueeze(2)
    size = gap.abs()
    huber = torch.where(size < 1.0, 0.5 * gap.square(), size - 0.5)
    weight = (levels.view(1, -1, 1) - (gap.detach() < 0).to(gap.dtype)).abs()
    return (weight * huber).mean(2).sum(1).mean()


class Agent(EvaluationMixin, TargetMixin, PrintMixin, LoopMixin):
    def __init__(self, log, quantiles=40):
        self.log = log
        self.net = QuantileNet(quantiles=quantiles)
        self.levels = (torch.arange(quantiles) + 0.5) / quantiles
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=3e-4)
        self.objective = torch.compile(self.td_error)

    def td_error(self, state, action, reward, following):
        with torch.no_grad():
            ahead = self.target(following)
            best = ahead.mean(-1).argmax(-1)
            wanted = reward[:, None] + 0.97 * self.pick(ahead, best)
        return quantile_huber(self.pick(self.net(state), action), wanted, self.levels)

    @staticmethod
    def pick(values, action):
        index = action.view(-1, 1, 1).expand(-1, 1, values.shape[-1])
        return values.gather(1, index).squeeze(1)

    def update(self, batch):
        loss = self.objective(*batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
