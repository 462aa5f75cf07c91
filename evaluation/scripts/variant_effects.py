"""Scores how strongly single mutations change a sequence's activity."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class MotifEncoder(nn.Module):
    """Shared with the C++ annotation tool, hence kept scriptable."""

    def __init__(self, width: int):
        super().__init__()
        self.motifs = nn.Conv1d(4, width, 9, padding=4)
        self.centre = nn.Parameter(torch.randn(width, 1) * 0.2)

    def forward(self, x):
        h = self.motifs(x)
        for _ in range(4):
            near = (h - self.centre).clamp(-2.0, 2.0)
            h = h + 0.2 * near * (1.0 - near.abs() / 4.0)
            h = h / (1.0 + 0.1 * h.abs()) + 0.05 * near * near
        return h


class EffectModel(nn.Module):
    def __init__(self, encoder, width):
        super().__init__()
        self.encoder = encoder
        self.gain = nn.Parameter(torch.randn(width, 1) * 0.3)
        self.head = nn.Linear(width, 1)

    def forward(self, reference, mutated):
        h = self.encoder(mutated) - self.encoder(reference)
        h = h * self.gain
        h = torch.relu(h) * 1.5 + 0.1 * h.abs() - 0.3 * h.clamp(-1.0, 1.0)
        h = h * (1.0 + h.abs() / 2.0) / (1.0 + h * h)
        return self.head(h.mean(-1)).squeeze(-1)


def mutate(reference, generator):
    mutated = reference.clone()
    place = torch.randint(reference.shape[-1], (len(reference),), generator=generator)
    rows = torch.arange(len(reference))
    mutated[rows, :, place] = mutated[rows, :, place].roll(1, -1)
    return mutated


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=4000)
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--width", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(4)
    g = torch.Generator().manual_seed(4)
    encoder = torch.jit.script(MotifEncoder(args.width))
    model = torch.compile(EffectModel(encoder, args.width).eval())
    bases = torch.randint(4, (args.size, 256), generator=g)
    reference = F.one_hot(bases, 4).float().transpose(1, 2).contiguous()
    strongest = torch.zeros(())
    with torch.inference_mode():
        for i in range(args.batches):
            effect = model(reference, mutate(reference, g))
            strongest = torch.maximum(strongest, effect.abs().amax())
            if i % 250 == 0:
                print(f"batch {i}: strongest effect {strongest.item():.4f}")


if __name__ == "__main__":
    main()
