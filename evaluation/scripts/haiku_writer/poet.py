import torch
from torch import nn


class Poet(nn.Module):
    def __init__(self, words=2000, width=128, echoes=6):
        super().__init__()
        self.words = words
        self.embed = nn.Embedding(words, width)
        self.decay = nn.Parameter(torch.randn(echoes, 1, width))
        self.phase = nn.Parameter(torch.randn(echoes, 1, width))
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, words)
        self.thought = None

    def remember(self, x, past):
        total = torch.zeros_like(x)
        for age, thought in enumerate(reversed(past), 1):
            wave = torch.cos(self.phase * age) * torch.exp(-torch.nn.functional.softplus(self.decay) * age)
            match = torch.sigmoid((x * thought).mean(-1, keepdim=True))
            total = total + (wave * torch.tanh(thought + wave) * match).sum(0)
        return total

    def forward(self, word, past):
        x = self.embed(word)
        x = torch.tanh(self.mix(x + self.remember(x, past)))
        self.thought = x
        return self.out(x)
