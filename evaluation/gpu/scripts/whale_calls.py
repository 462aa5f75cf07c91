"""Detect whale calls in long spectrograms."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "1800"))
CLIPS = 256
SIDE = 1024
BATCH = 16
DEV = "cuda"


class CallDetector(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1, SIDE, 1))
        self.floor = nn.Parameter(torch.zeros(1, SIDE, 1))
        self.power = nn.Parameter(torch.full((1, SIDE, 1), 0.5))
        self.head = nn.Linear(SIDE, 2)

    def forward(self, spec):
        e = spec.square() + 1e-5
        e = e.pow(self.power.clamp(0.1, 1.0))
        e = torch.log1p(e * torch.nn.functional.softplus(self.gain))
        e = e - self.floor
        e = e * torch.sigmoid(e)
        e = torch.tanh(e) + 0.1 * e
        e = (e - e.mean(-1, keepdim=True)) * torch.rsqrt(e.var(-1, keepdim=True) + 1e-4)
        e = nn.functional.gelu(e).mean(-1)
        return self.head(e)


def main():
    torch.manual_seed(1)
    clips = torch.randn(CLIPS, SIDE, SIDE)
    labels = torch.randint(0, 2, (CLIPS,))
    net = CallDetector().to(DEV)
    model = torch.compile(net)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    order = torch.Generator(device=clips.device).manual_seed(9)
    t0 = time.time()
    total = torch.zeros((), device=DEV)
    for step in range(STEPS):
        pick = torch.randint(0, CLIPS, (BATCH,), generator=order, device=clips.device)
        spec = clips[pick].to(DEV)
        target = labels[pick].to(DEV)
        loss = nn.functional.cross_entropy(model(spec), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
        if step % 100 == 0:
            print(f"{step} mean loss {total.item() / (step + 1):.4f} {time.time() - t0:.1f}s")


if __name__ == "__main__":
    main()
