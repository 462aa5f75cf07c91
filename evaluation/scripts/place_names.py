"""Character model of invented place names; a frozen teacher is distilled into a narrow student."""
import os
import random

import torch
from torch import nn

LETTERS, LENGTH, BATCH = 28, 20, 24
STEPS = int(os.environ.get("STEPS", "3200"))


class Squash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x / (1 + x.abs())
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / (1 + x.abs()).square()


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mix = nn.Linear(dim, 3 * dim)
        self.back = nn.Linear(dim, dim)
        self.decay = nn.Parameter(torch.linspace(-2, 3, dim))

    def forward(self, h):
        a, b, c = self.mix(self.norm(h)).chunk(3, -1)
        pos = torch.arange(h.shape[1])
        lag = (pos[:, None] - pos[None]).clamp_min(0)
        rate = torch.nn.functional.logsigmoid(self.decay)
        kernel = torch.exp(lag[..., None] * rate) * (pos[:, None] >= pos[None])[..., None]
        mixed = (kernel[None] * Squash.apply(a)[:, None]).sum(2)
        return h + self.back(mixed * torch.sigmoid(b) + Squash.apply(c))


class NameModel(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.table = nn.Embedding(LETTERS, dim)
        self.layers = nn.Sequential(*(Layer(dim) for _ in range(depth)))
        self.head = nn.Linear(dim, LETTERS)

    def forward(self, ids):
        return self.head(self.layers(self.table(ids)))


def names(seed):
    rng = random.Random(seed)
    heads, mids, tails = ["bre", "stan", "ul", "kir", "wen"], ["de", "la", "mo", "thra"], ["ford", "by", "ness", "wick"]
    while True:
        rows = []
        for _ in range(BATCH):
            word = rng.choice(heads) + "".join(rng.choice(mids) for _ in range(rng.randint(1, 3))) + rng.choice(tails)
            ids = [1] + [ord(c) - 95 for c in word][:LENGTH]
            rows.append(ids + [0] * (LENGTH + 1 - len(ids)))
        yield torch.tensor(rows)


def main():
    torch.manual_seed(60)
    teacher, student = NameModel(48, 2), NameModel(24, 2)
    opt_t, opt_s = (torch.optim.AdamW(m.parameters(), lr=3e-3) for m in (teacher, student))
    fast_t, fast_s = torch.compile(teacher), torch.compile(student)
    stream = names(61)
    warm = STEPS // 3
    for step in range(STEPS):
        batch = next(stream)
        x, y = batch[:, :-1], batch[:, 1:]
        if step < warm:
            loss = nn.functional.cross_entropy(fast_t(x).flatten(0, 1), y.flatten())
            opt = opt_t
        else:
            teacher.eval()
            with torch.no_grad():
                soft = torch.log_softmax(fast_t(x) / 2, -1)
            logits = torch.log_softmax(fast_s(x) / 2, -1)
            loss = nn.functional.kl_div(logits, soft, log_target=True, reduction="batchmean") / LENGTH
            opt = opt_s
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 160 == 0:
            print(f"step {step:5d}  {'teacher' if step < warm else 'student'}  loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
