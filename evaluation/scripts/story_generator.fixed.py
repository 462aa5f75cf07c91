"""Generate with a recurrent language model."""
import argparse

import torch
import torch.nn as nn


class RecurrentLM(nn.Module):
    def __init__(self, vocabulary=96, width=192):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.mix = nn.Linear(2 * width, 2 * width)
        self.head = nn.Linear(width, vocabulary)
        self.width = width

    def forward(self, token, state):
        both = torch.cat([self.embed(token), state], dim=-1)
        update, candidate = self.mix(both).chunk(2, dim=-1)
        gate = torch.sigmoid(update)
        state = gate * state + (1 - gate) * torch.tanh(candidate) + 0.1 * torch.sin(candidate)
        return self.head(torch.erf(state) * torch.exp(-state.square())), state

    def generate(self, token, length):
        state = torch.zeros(token.shape[0], self.width)
        for _ in range(length):
            logits, state = self.forward(token, state)
            token = logits.argmax(-1)
        return token


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stories", type=int, default=12000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = RecurrentLM().eval()
    model.forward = torch.compile(model.forward)
    start = torch.zeros(128, dtype=torch.long)
    with torch.no_grad():
        for _ in range(args.stories):
            end = model.generate(start, 8)
    print("ends with", end[:5].tolist())


if __name__ == "__main__":
    main()
