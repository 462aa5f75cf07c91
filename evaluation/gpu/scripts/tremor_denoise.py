"""Denoise seismometer streams; batches are staged to the GPU on a side stream."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "5000"))
BATCH = 64
LENGTH = 32768
DEV = "cuda"


class Shrink(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1, 16, 1))
        self.cut = nn.Parameter(torch.full((1, 16, 1), 0.1))

    def forward(self, x):
        lag = torch.roll(x, 1, -1)
        h = x - 0.5 * lag
        mag = torch.sqrt(h.square() + 1e-6)
        h = h * torch.sigmoid((mag - self.cut) * 4)
        h = h * self.gain + 0.05 * torch.tanh(h)
        return x - 0.2 * (x - h) / (1 + mag)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.spread = nn.Parameter(torch.randn(1, 16, 1))
        self.steps = nn.Sequential(*[Shrink() for _ in range(4)])
        self.gather = nn.Parameter(torch.randn(1, 16, 1) / 16)

    def forward(self, wave):
        x = wave[:, None] * self.spread
        return (self.steps(x) * self.gather).sum(1)


@torch.compiler.disable
def report(step, loss, t0):
    print(f"step {step} loss {loss.item():.5f} {time.time() - t0:.1f}s")


@torch.compile
def objective(net, noisy, clean):
    return (net(noisy) - clean).square().mean()


class Stager:
    def __init__(self, host):
        self.host, self.side = host, torch.cuda.Stream()
        self.stage(0)

    def stage(self, k):
        with torch.cuda.stream(self.side):
            self.next = self.host[k % len(self.host)].to(DEV, non_blocking=True)

    def take(self, k):
        torch.cuda.current_stream().wait_stream(self.side)
        ready = self.next
        ready.record_stream(torch.cuda.current_stream())
        self.stage(k + 1)
        return ready


def main():
    torch.manual_seed(21)
    net = Denoiser().to(DEV)
    average = [p.detach().clone() for p in net.parameters()]
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    host = [torch.randn(BATCH, LENGTH).pin_memory() for _ in range(8)]
    stager = Stager(host)
    t0 = time.time()
    for step in range(STEPS):
        clean = stager.take(step)
        noisy = clean + 0.3 * torch.randn_like(clean)
        loss = objective(net, noisy, clean)
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, list(net.parameters()), 0.01)
        if step % 500 == 0:
            report(step, loss, t0)


if __name__ == "__main__":
    main()
