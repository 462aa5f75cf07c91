"""Violin bowing gestures from motion-capture takes of uneven length."""
import os
import random
import time

import torch
import torch.nn as nn

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 8000))
BATCH, WIDTH, LAYERS = (2, 32, 2) if small else (24, 512, 6)
SHORTEST, LONGEST = (16, 64) if small else (640, 2048)


class GestureLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(WIDTH))
        self.lin = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.back = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        n = x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6).to(x.dtype) * self.gain
        a, g = self.lin(n).chunk(2, dim=-1)
        shifted = torch.nn.functional.pad(a, (0, 0, 1, 0))[:, :-1]
        return x + self.back((a + 0.5 * shifted) * torch.sigmoid(1.702 * g) * torch.cos(0.1 * g))


class GestureNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.markers = nn.Linear(48, WIDTH)
        self.layers = nn.ModuleList(GestureLayer() for _ in range(LAYERS))
        self.strokes = nn.Linear(WIDTH, 16)

    def forward(self, take):
        x = self.markers(take)
        for layer in self.layers:
            x = layer(x)
        return self.strokes(x).float().softmax(-1)


@torch.inference_mode()
def main():
    torch.manual_seed(3)
    random.seed(3)
    net = torch.compile(GestureNet().to(device, torch.bfloat16).eval())
    pool = torch.randn(BATCH, LONGEST, 48, device=device, dtype=torch.bfloat16)
    total = torch.zeros(16, device=device)
    began = time.perf_counter()
    for step in range(STEPS):
        frames = random.randrange(SHORTEST, LONGEST + 1, 8)
        take = pool[:, :frames].contiguous()
        torch._dynamo.mark_dynamic(take, 1)
        total += net(take).mean((0, 1))
        if step % 400 == 0:
            print(f"take {step:5d} frames {frames} main stroke {total.argmax().item()} "
                  f"({time.perf_counter() - began:.1f} s)")


if __name__ == "__main__":
    main()
