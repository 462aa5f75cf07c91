"""Quantisation-aware keyword spotter with learned step sizes and a straight-through rounding function."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", 6500))
torch.set_num_threads(1)


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward(x)
        ctx.lo, ctx.hi = lo, hi
        return x.round().clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        inside = (x >= ctx.lo) & (x <= ctx.hi)
        return grad * inside, None, None


class FakeQuant(nn.Module):
    def __init__(self, bits=4):
        super().__init__()
        self.log_step = nn.Parameter(torch.tensor(-2.0))
        self.lo, self.hi = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def forward(self, x):
        s = self.log_step.exp()
        return Round.apply(x / s, self.lo, self.hi) * s


class Spotter(nn.Module):
    def __init__(self, mels=40, width=48, depth=4, words=12):
        super().__init__()
        self.inp = nn.Linear(mels, width)
        self.act = nn.ModuleList(FakeQuant() for _ in range(depth))
        self.mix = nn.Parameter(torch.randn(depth, 3, width) * 0.3)
        self.out = nn.Linear(width, words)

    def forward(self, mel):
        h = self.inp(mel)
        for quant, taps in zip(self.act, self.mix):
            p = nn.functional.pad(h, (0, 0, 1, 1))
            conv = p[:, :-2] * taps[0] + h * taps[1] + p[:, 2:] * taps[2]
            h = h + quant(nn.functional.gelu(conv))
        return self.out(h.mean(1))


def main():
    torch.manual_seed(41)
    net = torch.compile(Spotter())
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    proto = torch.randn(12, 40)
    every = max(1, STEPS // 10)
    t0, s0, right = None, 0, 0.0
    for step in range(STEPS):
        if step == 2:
            t0, s0 = time.perf_counter(), step
        word = torch.randint(0, 12, (32,))
        mel = proto[word].unsqueeze(1) + torch.randn(32, 60, 40)
        logits = net(mel)
        loss = nn.functional.cross_entropy(logits, word)
        opt.zero_grad()
        loss.backward()
        opt.step()
        right = 0.98 * right + 0.02 * (logits.argmax(-1) == word).float().mean().item()
        if step > 2 and step % every == 0:
            ms = (time.perf_counter() - t0) / (step - s0) * 1e3
            print(f"step {step}: loss {loss.item():.4f} acc {right:.3f}  {ms:.3f} ms/step")
            t0, s0 = time.perf_counter(), step


if __name__ == "__main__":
    main()
