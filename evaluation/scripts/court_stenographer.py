"""Phoneme tagging with a bidirectional GRU."""
import argparse

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, bands=40, hidden=160, phonemes=44):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(bands))
        self.rnn = nn.GRU(bands, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, phonemes)

    def forward(self, audio):
        audio = torch.log1p(audio.abs()) * self.gain
        hidden, _ = self.rnn(audio)
        return self.out(torch.relu(hidden))


def recordings(count, frames, seed):
    g = torch.Generator().manual_seed(seed)
    audio = torch.randn(count, frames, 40, generator=g)
    labels = (audio[..., :22] - audio[..., 10:32]).argmax(-1)
    return audio, labels


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=200)
    args = ap.parse_args()
    torch.manual_seed(19)
    audio, labels = recordings(64, 80, seed=1)
    model = Tagger()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    tag = torch.compile(model)
    for step in range(args.steps):
        lo = (step * 8) % 64
        logits = tag(audio[lo:lo + 8])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels[lo:lo + 8].flatten())
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 20 == 0:
            print(f"step {step:4d} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
