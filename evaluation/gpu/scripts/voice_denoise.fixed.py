"""Train a gated spectral denoiser; track per-tensor gradient/weight ratios and keep an averaged copy."""
import copy
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"
STEPS = int(os.environ.get("STEPS", "1000"))
BINS = 128
FRAMES = 256
BATCH = 16
DEPTH = 24


class Gate(nn.Module):
    def __init__(self, ch):
        super().__init__()
        self.norm = nn.LayerNorm(ch)
        self.val = nn.Linear(ch, ch)
        self.gate = nn.Linear(ch, ch)
        self.mix = nn.Linear(ch, ch)
        self.scale = nn.Parameter(torch.full((ch,), 0.2))

    def forward(self, x):
        h = self.norm(x)
        return x + self.scale * self.mix(torch.tanh(self.val(h)) * torch.sigmoid(self.gate(h)))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*[Gate(BINS) for _ in range(DEPTH)])
        self.mask = nn.Linear(BINS, BINS)

    def forward(self, mag):
        x = torch.log1p(mag)
        return mag * torch.sigmoid(self.mask(self.layers(x)))


class Trainer:
    def __init__(self):
        self.net = Denoiser().to(device)
        self.avg = copy.deepcopy(self.net).requires_grad_(False)
        self.model = torch.compile(self.net)
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=5e-4, fused=True)
        self.peak_ratio = {name: 0.0 for name, _ in self.net.named_parameters()}

    def record_ratios(self):
        params = list(self.net.parameters())
        grads = torch.stack(torch._foreach_norm([p.grad for p in params]))
        weights = torch.stack(torch._foreach_norm([p.detach() for p in params]))
        ratios = (grads / (weights + 1e-8)).tolist()
        for (name, _), ratio in zip(self.net.named_parameters(), ratios):
            self.peak_ratio[name] = max(self.peak_ratio[name], ratio)

    @torch.no_grad()
    def average(self, decay=0.999):
        for a, p in zip(self.avg.parameters(), self.net.parameters()):
            a.mul_(decay).add_(p, alpha=1 - decay)

    def step(self, noisy, clean):
        loss = F.l1_loss(self.model(noisy), clean)
        loss.backward()
        self.record_ratios()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        self.average()
        return loss.detach()


def main():
    torch.manual_seed(15)
    trainer = Trainer()
    clean = torch.rand(8, BATCH, FRAMES, BINS, device=device)
    noisy = (clean + 0.3 * torch.randn_like(clean)).abs()
    for i in range(3):
        trainer.step(noisy[i], clean[i])
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        loss = trainer.step(noisy[step % 8], clean[step % 8])
        if step % 250 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            worst = max(trainer.peak_ratio, key=trainer.peak_ratio.get)
            print(f"step {step:5d}  l1 {loss.item():.4f}  liveliest {worst}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
