import torch
import torch.nn as nn


class Chain(nn.Module):
    """One position of the forward algorithm, in logarithms."""

    def __init__(self, states, letters):
        super().__init__()
        self.start = nn.Parameter(torch.randn(states).log_softmax(0))
        self.move = nn.Parameter(torch.randn(states, states).log_softmax(1))
        self.emit = nn.Parameter(torch.randn(letters, states).log_softmax(0))

    def forward(self, alpha, letter):
        reached = torch.logsumexp(alpha.unsqueeze(2) + self.move, dim=1)
        return reached + self.emit[letter]
