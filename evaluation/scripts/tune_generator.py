"""Compose melodies."""
import argparse

import torch
import torch.nn as nn


class Melody(nn.Module):
    def __init__(self, notes=64, width=160):
        super().__init__()
        self.embed = nn.Embedding(notes, width)
        self.turn = nn.Linear(width, width)
        self.head = nn.Linear(width, notes)

    def forward(self, note, state):
        x = self.embed(note)
        state = torch.tanh(self.turn(state)) * torch.sigmoid(x) + torch.sin(x)
        state = state * torch.exp(-state.square()) + torch.erf(x)
        return self.head(state), state

    def sample(self, logits):
        sharpness = logits.std().item()
        return torch.argmax(logits / max(sharpness, 0.1), dim=-1)

    @torch.no_grad()
    def compose(self, note, length=16):
        state = torch.zeros(note.shape[0], 160)
        for _ in range(length):
            logits, state = self(note, state)
            note = self.sample(logits)
        return note


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tunes", type=int, default=7500)
    args = parser.parse_args()
    torch.manual_seed(0)
    composer = torch.compile(Melody().eval())
    note = torch.zeros(128, dtype=torch.long)
    for _ in range(args.tunes):
        note = composer.compose(note)
    print(note[:8].tolist())


if __name__ == "__main__":
    main()
