"""Denoising autoencoder on galaxy photometry; each epoch ends with a shorter batch."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda"
STEPS = int(os.environ.get("STEPS", "15000"))
ROWS = 620_000
BATCH = 131_072
DIM = 128


class Shrink(nn.Module):
    """Elementwise rational activation with learned coefficients."""

    def __init__(self, dim):
        super().__init__()
        self.a = nn.Parameter(torch.ones(dim))
        self.b = nn.Parameter(torch.full((dim,), 0.5))
        self.c = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        y = self.a * x + self.c
        return y * torch.sigmoid(self.b * y) + 0.1 * torch.tanh(x) / (1.0 + x.square()).sqrt()


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(DIM, DIM)
        self.act1 = Shrink(DIM)
        self.norm = nn.LayerNorm(DIM)
        self.act2 = Shrink(DIM)
        self.dec = nn.Linear(DIM, DIM)

    def forward(self, x):
        noisy = x + 0.1 * torch.randn_like(x)
        h = self.act2(self.norm(self.act1(self.enc(noisy))))
        return self.dec(F.dropout(h, 0.05, self.training))


def main():
    torch.manual_seed(24)
    torch.set_float32_matmul_precision("high")
    net = Autoencoder().to(device)
    net.compile()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    data = torch.randn(ROWS, DIM, device=device).cumsum(1) / DIM**0.5
    t0 = time.perf_counter()
    done = mark = 0
    while done < STEPS:
        total, batches = torch.zeros((), device=device), 0
        for lo in range(0, ROWS, BATCH):
            x = data[lo : lo + BATCH]
            loss = F.smooth_l1_loss(net(x), x)
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            total += loss.detach()
            batches += 1
        done += batches
        if done - mark >= 1000 or done >= STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            print(f"{done:6d} steps  loss {total.item() / batches:.5f}  {1000 * (t1 - t0) / (done - mark):.3f} ms/step", flush=True)
            t0, mark = t1, done


if __name__ == "__main__":
    main()
