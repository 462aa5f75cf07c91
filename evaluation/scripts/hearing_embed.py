"""Speech intelligibility features: cochlear filterbank energies, loudness compression, band attention."""
import os
import time

import torch
from torch import nn
import torch.nn.functional as F

BATCH, FRAMES, BANDS = 8, 160, 192


class Loudness(nn.Module):
    def __init__(self, exponent=0.27):
        super().__init__()
        self.exponent = exponent
        self.register_buffer("floor", torch.linspace(1e-3, 5e-3, BANDS))

    def forward(self, energy):
        return (energy + self.floor) ** self.exponent


class Intelligibility(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.loudness = Loudness()
        self.norm = nn.LayerNorm(BANDS)
        self.project = nn.Linear(BANDS, hidden)
        self.score = nn.Linear(hidden, 1)

    def forward(self, energy):
        specific = self.loudness(energy)
        x = self.norm(specific)
        h = F.relu(self.project(x))
        weight = torch.softmax(self.score(h), dim=1)
        return (weight * h).sum(dim=1), specific.mean(dim=(1, 2))


def cochlea_energy(generator):
    envelope = torch.rand(BATCH, FRAMES, 1, generator=generator) ** 3
    tilt = torch.linspace(1.5, 0.1, BANDS)
    fine = torch.rand(BATCH, FRAMES, BANDS, generator=generator)
    return envelope * tilt * fine


def main():
    torch.set_num_threads(1)
    torch.manual_seed(17)
    steps = int(os.environ.get("STEPS", "240"))
    generator = torch.Generator().manual_seed(17)
    model = Intelligibility().eval()
    embed = torch.compile(model)
    utterances = [cochlea_energy(generator) for _ in range(10)]
    bank = torch.zeros(BATCH, 48)
    loud = 0.0
    half = time.perf_counter()
    with torch.no_grad():
        for step in range(steps):
            if step == steps // 2:
                half = time.perf_counter()
            vector, mean_loudness = embed(utterances[step % len(utterances)])
            bank = 0.95 * bank + 0.05 * vector
            if step % 40 == 39:
                loud += mean_loudness.mean().item()
    per_step = (time.perf_counter() - half) / max(1, steps - steps // 2)
    print(f"embedding norm {bank.norm().item():.4f}, loudness {loud:.4f}")
    print(f"{per_step * 1e3:.3f} ms per step")


if __name__ == "__main__":
    main()
