"""Predict pump failures from vibration windows with a layer-normalised recurrent cell."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda"
HIDDEN = 192
WINDOW = 16
BATCH = 512
STEPS = int(os.environ.get("STEPS", "3000"))


class NormCell(nn.Module):
    def __init__(self, n_in, n):
        super().__init__()
        self.wx = nn.Linear(n_in, 4 * n)
        self.wh = nn.Linear(n, 4 * n, bias=False)
        self.norm_gates = nn.LayerNorm(4 * n)
        self.norm_cell = nn.LayerNorm(n)

    def forward(self, x, h, c):
        i, f, g, o = self.norm_gates(self.wx(x) + self.wh(h)).chunk(4, dim=-1)
        c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(self.norm_cell(c)), c


class PumpNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = NormCell(8, HIDDEN)
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, window):
        h = window.new_zeros(window.shape[0], HIDDEN)
        c = torch.zeros_like(h)
        for t in range(WINDOW):
            h, c = self.cell(window[:, t], h, c)
        return self.out(h).squeeze(-1)


@torch.compiler.disable
def report(step, loss, since):
    value = float(loss)
    print(f"step {step:5d}  loss {value:.4f}  {(time.perf_counter() - since) / 100 * 1e3:.2f} ms")


def main():
    torch.manual_seed(6)
    torch.set_float32_matmul_precision("high")
    net = PumpNet().to(DEVICE)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)

    @torch.compile
    def objective(window, failed):
        return F.binary_cross_entropy_with_logits(net(window), failed)

    windows = torch.randn(64, BATCH, WINDOW, 8, device=DEVICE)
    labels = (windows[:, :, -4:, 0].mean(-1) > 0).float()
    since = time.perf_counter()
    for step in range(1, STEPS + 1):
        k = step % 64
        loss = objective(windows[k], labels[k])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 100 == 0:
            report(step, loss.detach(), since)
            since = time.perf_counter()


if __name__ == "__main__":
    main()
