"""Contrastive pairing of accelerometer clips and activity descriptions."""
import gc
import os
import time

import torch
import torch.nn.functional as F
from torch import nn

CHANNELS, SAMPLES, WORDS, DIM = 6, 128, 400, 64


class SignalTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(CHANNELS * 8, 96)
        self.gate = nn.Linear(96, 96)
        self.proj = nn.Linear(96, DIM)

    def forward(self, clip):
        frames = clip.unflatten(-1, (-1, 8)).transpose(1, 2).flatten(2)
        h = torch.tanh(self.stem(frames))
        h = h * torch.sigmoid(self.gate(h))
        return F.normalize(self.proj(h.mean(1)), dim=-1)


class TextTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(WORDS, 96, mode="mean")
        self.proj = nn.Linear(96, DIM)

    def forward(self, tokens, offsets):
        return F.normalize(self.proj(torch.relu(self.bag(tokens, offsets))), dim=-1)


class Pairing(nn.Module):
    def __init__(self):
        super().__init__()
        self.signal = SignalTower()
        self.text = TextTower()
        self.log_temp = nn.Parameter(torch.tensor(2.0))

    def forward(self, clip, tokens, offsets):
        sim = self.log_temp.exp() * self.signal(clip) @ self.text(tokens, offsets).T
        labels = torch.arange(sim.shape[0])
        return 0.5 * (F.cross_entropy(sim, labels) + F.cross_entropy(sim.T, labels))


class Housekeeping:
    """Trainer callback: running loss and keeping the resident set flat on the edge box."""

    def __init__(self, every):
        self.every = every
        self.mean = None

    def on_step_end(self, step, loss):
        value = loss.detach()
        self.mean = value if self.mean is None else self.mean.lerp(value, 0.05)
        if (step + 1) % self.every == 0:
            gc.collect()


def make_batch(gen, batch=48):
    kind = torch.randint(0, 20, (batch,), generator=gen)
    t = torch.linspace(0, 1, SAMPLES)
    freq = 1.0 + kind.view(-1, 1, 1) + torch.arange(CHANNELS).view(1, -1, 1)
    clip = torch.sin(6.2832 * freq * t) + 0.2 * torch.randn(batch, CHANNELS, SAMPLES, generator=gen)
    words = kind.unsqueeze(1) * 20 + torch.randint(0, 20, (batch, 12), generator=gen)
    return clip, words.flatten(), torch.arange(0, batch * 12, 12)


def main():
    torch.manual_seed(0)
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(1)
    pool = [make_batch(gen) for _ in range(12)]
    model = Pairing()
    objective = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    chores = Housekeeping(every=40)

    started = None
    for step in range(steps):
        if step == steps // 4:
            started = time.perf_counter()
        loss = objective(*pool[step % len(pool)])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        chores.on_step_end(step, loss)

    per_step = (time.perf_counter() - started) / (steps - steps // 4)
    print(f"running loss {chores.mean.item():.4f}  mean step {1e3 * per_step:.2f} ms")


if __name__ == "__main__":
    main()
