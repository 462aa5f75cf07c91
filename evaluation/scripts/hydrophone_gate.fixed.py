"""Train a small gated filter stack that separates ship noise from whale calls."""
import os
import torch
import torch.nn.functional as F
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(21)

STEPS = int(os.environ.get("STEPS", "4000"))
BATCH = 8
BANDS = 96
FRAMES = 512
TAPS = 4
LAYERS = 3


class GatedFilter(nn.Module):
    def __init__(self, bands, taps):
        super().__init__()
        self.taps = taps
        self.filter = nn.Conv1d(bands, bands, taps, groups=bands)
        self.scale = nn.Parameter(torch.ones(bands, 1))

    def forward(self, x):
        past = F.pad(x, (self.taps - 1, 0))
        w, frames = self.filter.weight[:, 0], x.shape[2]
        y = self.filter.bias[:, None] + sum(
            past[..., k : k + frames] * w[:, k : k + 1] for k in range(self.taps)
        )
        return x + self.scale * y * torch.sigmoid(y)


class CallSeparator(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(GatedFilter(BANDS, TAPS) for _ in range(LAYERS))
        self.readout = nn.Linear(BANDS, 3)

    def forward(self, spec):
        h = spec
        for block in self.blocks:
            h = block(h)
        return self.readout(h.mean(dim=2))


def clip_batch(bank, labels):
    pick = torch.randint(0, bank.shape[0], (BATCH,))
    return bank[pick], labels[pick]


def main():
    bank = torch.randn(64, BANDS, FRAMES)
    labels = torch.randint(0, 3, (64,))
    separator = CallSeparator()
    opt = torch.optim.SGD(separator.parameters(), lr=0.01)

    @torch.compile
    def objective(spec, target):
        return F.cross_entropy(separator(spec), target)

    for step in range(STEPS):
        spec, target = clip_batch(bank, labels)
        loss = objective(spec, target)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 250 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
