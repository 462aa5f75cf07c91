"""Inference of a small message-passing network over a batch of molecules."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", "4000"))
ATOMS, BONDS, WIDTH = 3000, 24000, 64


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.upd = nn.Linear(width, width)

    def gather(self, msg, dst, n):
        out = torch.zeros(n, msg.shape[1])
        return out.index_add(0, dst, msg)

    def forward(self, h, src, dst, bond):
        msg = h[src] * bond
        agg = self.gather(msg, dst, h.shape[0])
        return h + torch.relu(self.upd(agg)) * 0.1


class Energy(nn.Module):
    def __init__(self, width, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, h, src, dst, bond):
        for layer in self.layers:
            h = layer(h, src, dst, bond)
        return self.head(h).sum()


def main():
    torch.manual_seed(2)
    torch.set_num_threads(1)
    net = Energy(WIDTH).eval()
    net.compile()
    h = torch.randn(ATOMS, WIDTH)
    src = torch.randint(0, ATOMS, (BONDS,))
    dst = torch.randint(0, ATOMS, (BONDS,))
    bond = torch.randn(BONDS, WIDTH) * 0.1
    t0 = time.perf_counter()
    with torch.no_grad():
        for step in range(STEPS):
            e = net(h, src, dst, bond)
            if (step + 1) % 50 == 0:
                t1 = time.perf_counter()
                print(f"batch {step + 1} energy {e.item():.3f} {(t1 - t0) / 50 * 1e3:.2f} ms/step", flush=True)
                t0 = t1


if __name__ == "__main__":
    main()
