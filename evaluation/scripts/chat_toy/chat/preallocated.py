import torch
from torch import nn


class ChatModel(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)

    def forward(self, x, keys, values, position):
        keys.index_copy_(1, position.unsqueeze(0), self.k(x).unsqueeze(1))
        values.index_copy_(1, position.unsqueeze(0), self.v(x).unsqueeze(1))
        score = torch.tanh((self.q(x).unsqueeze(1) * keys).sum(-1))
        later = torch.arange(keys.shape[1]) > position
        weight = torch.softmax(score.masked_fill(later, -torch.inf), dim=1).unsqueeze(-1)
        h = (weight * torch.sin(values)).sum(1)
        return torch.tanh(x + h * torch.sigmoid(h))


class ChatSession:
    def __init__(self, model, most=32):
        self.model, self.most = model, most
        self.positions = torch.arange(most).unbind()
        self.keys, self.values = torch.zeros(64, most, 128), torch.zeros(64, most, 128)
        self.turns = 0

    @torch.no_grad()
    def turn(self, x):
        position = self.positions[self.turns % self.most]
        self.turns += 1
        return self.model(x, self.keys, self.values, position)
