import torch
from torch import nn


class ChatModel(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)

    def forward(self, x, keys, values):
        keys.append(self.k(x))
        values.append(self.v(x))
        k, v = torch.stack(keys, 1), torch.stack(values, 1)
        score = (self.q(x).unsqueeze(1) * k).sum(-1)
        weight = torch.softmax(torch.tanh(score), dim=1).unsqueeze(-1)
        h = (weight * torch.sin(v)).sum(1)
        return torch.tanh(x + h * torch.sigmoid(h))
