"""Learn the intent of short phrases with a minimal gated recurrence of our own."""
import configparser
import random
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

SETTINGS = """
[net]
symbols = 60
width = 64
intents = 9
[training]
batch = 48
rate = 0.003
shortest = 3
longest = 14
"""


class MinimalCell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.both = nn.Linear(2 * width, 2 * width)

    def forward(self, word, state):
        keep, fresh = self.both(torch.cat((word, state), -1)).chunk(2, -1)
        return torch.lerp(torch.tanh(fresh), state, torch.sigmoid(keep))


class IntentReader(nn.Module):
    def __init__(self, net):
        super().__init__()
        width = net.getint("width")
        self.words = nn.Embedding(net.getint("symbols"), width)
        self.cell = MinimalCell(width)
        self.intent = nn.Linear(width, net.getint("intents"))

    def forward(self, phrase):
        words = self.words(phrase)
        state = words.new_zeros(len(phrase), words.shape[-1])
        for position in range(phrase.shape[1]):
            state = self.cell(words[:, position], state)
        return self.intent(state)


def phrases(net, training, seed=3):
    """Endless batches; the phrases of one batch have as many words as its longest."""
    draw = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    while True:
        length = draw.randint(training.getint("shortest"), training.getint("longest"))
        batch = torch.randint(net.getint("symbols"), (training.getint("batch"), length), generator=generator)
        yield batch, (batch[:, 0] + batch[:, -1]) % net.getint("intents")


def main(steps):
    config = configparser.ConfigParser()
    config.read_string(SETTINGS)
    net, training = config["net"], config["training"]
    torch.manual_seed(0)
    reader = IntentReader(net)
    fast = torch.compile(reader)
    optimizer = torch.optim.Adam(reader.parameters(), training.getfloat("rate"))
    source = phrases(net, training)
    for step in range(steps):
        batch, intent = next(source)
        loss = F.cross_entropy(fast(batch), intent)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 500 == 499:
            print(f"step {step + 1}: {loss.item():.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24000)
