"""Character-level morphological tagger with a compute ledger for the experiment log."""
import os
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

CHARS, TAGS, LENGTH, WIDTH = 96, 14, 40, 48


class GatedConv(nn.Module):
    def __init__(self, width, dilation):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.shift = dilation
        self.proj = nn.Linear(2 * width, 2 * width)

    def forward(self, x):
        h = self.norm(x)
        past = F.pad(h, (0, 0, self.shift, 0))[:, : h.shape[1]]
        value, gate = self.proj(torch.cat([h, past], -1)).chunk(2, -1)
        return x + torch.tanh(value) * torch.sigmoid(gate)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(CHARS, WIDTH)
        self.blocks = nn.ModuleList(GatedConv(WIDTH, 2 ** i) for i in range(3))
        self.head = nn.Linear(WIDTH, TAGS)

    def forward(self, chars, tags):
        h = self.embed(chars)
        for block in self.blocks:
            h = block(h)
        logits = self.head(h)
        loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten(), label_smoothing=0.05)
        return loss, logits.argmax(-1)


class ComputeLedger:
    """Keeps the number of training FLOPs so that runs can be compared by budget."""

    def __init__(self):
        self.counter = FlopCounterMode(display=False)

    def on_fit_start(self):
        self.counter.__enter__()

    def on_step_end(self, step):
        pass

    def on_fit_end(self):
        self.counter.__exit__(None, None, None)

    def total(self, steps):
        return self.counter.get_total_flops()


def batches(gen, count):
    rule = torch.randint(0, TAGS, (CHARS,), generator=gen)
    for _ in range(count):
        chars = torch.randint(0, CHARS, (6, LENGTH), generator=gen)
        yield chars, (rule[chars] + rule[chars.roll(1, 1)]) % TAGS


def main():
    torch.manual_seed(0)
    steps = int(os.environ.get("STEPS", "240"))
    data = list(batches(torch.Generator().manual_seed(5), 24))
    model = Tagger()
    compiled = torch.compile(model)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=True)
    ledger = ComputeLedger()

    times, hits = [], 0.0
    ledger.on_fit_start()
    for step in range(steps):
        chars, tags = data[step % len(data)]
        t0 = time.perf_counter()
        loss, guess = compiled(chars, tags)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        times.append(time.perf_counter() - t0)
        hits = 0.95 * hits + 0.05 * (guess == tags).float().mean().item()
        ledger.on_step_end(step)
    ledger.on_fit_end()

    tail = sorted(times[len(times) // 2:])
    print(f"acc {hits:.3f}  GFLOPs {ledger.total(steps) / 1e9:.2f}")
    print(f"median step {1e3 * tail[len(tail) // 2]:.2f} ms")


if __name__ == "__main__":
    main()
