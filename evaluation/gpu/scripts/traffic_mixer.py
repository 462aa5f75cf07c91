"""Forecast traffic counts for a city's sensors with a mixer."""
import os
import time
from collections import defaultdict

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "4000"))
SENSORS = 128
HISTORY = 96
DIM = 256
BLOCKS = 12
BATCH = 16
DEV = "cuda"


class SensorMixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.across = nn.Linear(SENSORS, SENSORS)
        self.act = nn.GELU()
        self.within = nn.Linear(DIM, DIM)

    def forward(self, x):
        h = self.norm(x)
        h = self.across(h.transpose(1, 2)).transpose(1, 2)
        return x + self.within(self.act(h))


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(HISTORY, DIM)
        self.blocks = nn.ModuleList([SensorMixer() for _ in range(BLOCKS)])
        self.head = nn.Linear(DIM, 12)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Watch:
    def __init__(self, net):
        self.mean = defaultdict(float)
        for name, mod in net.named_modules():
            if isinstance(mod, (nn.Linear, nn.LayerNorm, nn.GELU)):
                mod.register_forward_hook(self.make(name))

    def make(self, name):
        def hook(mod, args, out):
            self.mean[name] = 0.99 * self.mean[name] + 0.01 * out.detach().abs().mean().item()
        return hook


def main():
    torch.manual_seed(2)
    torch.set_float32_matmul_precision("high")
    net = Forecaster().to(DEV)
    watch = Watch(net)
    model = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True)
    past = torch.randn(32, BATCH, SENSORS, HISTORY, device=DEV)
    future = past[..., -12:].cumsum(-1)
    t0 = time.time()
    for step in range(STEPS):
        k = step % 32
        loss = nn.functional.smooth_l1_loss(model(past[k]), future[k])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            top = max(watch.mean, key=watch.mean.get, default="-")
            print(f"{step} loss {loss.item():.4f} loudest {top} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
