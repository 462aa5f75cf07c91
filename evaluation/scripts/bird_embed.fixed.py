"""Embeds overlapping audio windows of a field recording with a small mixer network (inference only)."""
import os
import torch
from torch import nn

MELS, FRAMES, DIM, DEPTH, BATCH = 64, 48, 160, 4, 3
STEPS = int(os.environ.get("STEPS", "2200"))


class Mixer(nn.Module):
    def __init__(self, dim, frames):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.time = nn.Linear(frames, frames)
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def forward(self, x):
        x = x + self.time(self.n1(x).transpose(1, 2)).transpose(1, 2)
        a, b = self.up(self.n2(x)).chunk(2, -1)
        return x + self.down(nn.functional.silu(a) * b)


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(MELS, DIM)
        self.layers = nn.ModuleList(Mixer(DIM, FRAMES) for _ in range(DEPTH))
        self.head = nn.Linear(DIM, 64)

    def forward(self, mel):
        h = self.inp(torch.log1p(mel))
        for layer in self.layers:
            h = layer(h)
        return nn.functional.normalize(self.head(h.mean(1)), dim=-1)


class Recording:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        base = torch.rand(4000, 1, generator=g)
        self.mel = (base * torch.rand(4000, MELS, generator=g)).square()

    def windows(self, n):
        for i in range(n):
            start = (i * 37) % (4000 - BATCH * FRAMES)
            yield self.mel[start:start + BATCH * FRAMES].view(BATCH, FRAMES, MELS)


@torch.inference_mode()
def main():
    torch.manual_seed(6)
    precision = torch.bfloat16
    net = Embedder().eval().to(precision)
    embed = torch.compile(net)
    bank = nn.functional.normalize(torch.randn(40, 64), dim=-1)
    votes = torch.zeros(40, dtype=torch.long)
    novelty, last = 0.0, None
    for i, window in enumerate(Recording(5).windows(STEPS)):
        z = embed(window.to(precision)).float()
        votes += torch.bincount((z @ bank.T).argmax(-1), minlength=40)
        if last is not None:
            novelty = 0.98 * novelty + 0.02 * (1 - (z * last).sum(-1).mean().item())
        last = z
        if i % 110 == 0:
            print(f"window {i:5d}  novelty {novelty:.4f}  most frequent class {votes.argmax().item()}")
    print("votes", votes.topk(5).values.tolist())


if __name__ == "__main__":
    main()
