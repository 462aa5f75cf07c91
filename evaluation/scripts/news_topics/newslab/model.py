import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide = nn.Linear(width, 4 * width, bias=False)
        self.back = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return x + 0.5 * self.back(nn.functional.gelu(self.wide(x)))


class TopicNet(nn.Module):
    def __init__(self, words, width, topics, depth=3):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.readers = nn.Sequential(*[Reader(width) for _ in range(depth)])
        self.drop = nn.Dropout(0.1)
        self.topics = nn.Linear(width, topics)

    def forward(self, text):
        x = self.readers(self.words(text))
        return self.topics(self.drop(x.mean(1)))
