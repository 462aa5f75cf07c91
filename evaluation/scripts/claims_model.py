"""Insurance claims: factorised feature net, several epochs with a short last batch."""
import os
import time

import torch
import torch.nn as nn

STEPS = int(os.environ.get("STEPS", 10000))
ROWS, BATCH = 10100, 256
torch.set_num_threads(1)


class ClaimNet(nn.Module):
    def __init__(self, features=32, bins=10):
        super().__init__()
        self.centre = nn.Parameter(torch.linspace(-2, 2, bins).repeat(features, 1))
        self.width = nn.Parameter(torch.zeros(features, bins))
        self.effect = nn.Parameter(torch.randn(features, bins) * 0.05)
        self.log_disp = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        z = (x.unsqueeze(-1) - self.centre) * nn.functional.softplus(self.width + 0.5)
        member = torch.softmax(-z.square(), -1)
        return (member * self.effect).sum((1, 2))


def epoch_batches(x, y):
    perm = torch.randperm(len(x))
    for i in range(0, len(x), BATCH):
        idx = perm[i:i + BATCH]
        yield x[idx], y[idx]


def main():
    torch.manual_seed(31)
    x = torch.randn(ROWS, 32)
    y = torch.exp(0.3 * x[:, 0].abs() - 0.2 * x[:, 1]) + 0.1 * torch.rand(ROWS)
    net = ClaimNet()
    model = torch.compile(net)
    opt = torch.optim.Adam(net.parameters(), lr=5e-3)
    step, every = 0, max(1, STEPS // 10)
    t0, s0 = None, 0
    while step < STEPS:
        for xb, yb in epoch_batches(x, y):
            if step == 2:
                t0, s0 = time.perf_counter(), step
            eta = model(xb)
            loss = (torch.exp(-eta) * yb + eta).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step > 2 and step % every == 0:
                ms = (time.perf_counter() - t0) / (step - s0) * 1e3
                print(f"step {step}: deviance {loss.item():.4f}  {ms:.3f} ms/step")
                t0, s0 = time.perf_counter(), step
            step += 1
            if step >= STEPS:
                break


if __name__ == "__main__":
    main()
