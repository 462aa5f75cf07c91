"""Trains a mixture-density smoother; reports FLOPs of one step up front."""
import os
import time
import torch
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(11)

N, D, H = 6000, 16, 96
STEPS = 200
STEPS = int(os.environ.get("STEPS", STEPS))


class Params:
    def __init__(self):
        self.w1 = (torch.randn(D, H) * 0.3).requires_grad_()
        self.b1 = torch.zeros(H, requires_grad=True)
        self.mu = torch.zeros(H, requires_grad=True)
        self.ls = torch.zeros(H, requires_grad=True)

    def all(self):
        return [self.w1, self.b1, self.mu, self.ls]


@torch.compile
def nll(w1, b1, mu, ls, x, y):
    h = x @ w1 + b1
    z = (y[:, None] - torch.sin(h) * mu) * torch.exp(-ls)
    logp = -0.5 * z.square() - ls - torch.log1p(torch.exp(-h.abs()))
    gate = torch.sigmoid(h * 0.7 + torch.cos(h)) * torch.tanh(0.5 * h)
    gate = gate + 0.1 * torch.sin(gate * 3) - 0.05 * torch.exp(-gate * gate)
    mix = torch.log_softmax(torch.tanh(h) * 2 + gate * h / (1 + h.abs()), dim=1)
    return -torch.logsumexp(logp + mix, dim=1).mean()


def make_data():
    x = torch.randn(N, D)
    y = torch.sin(x[:, 0] * 2) + 0.3 * x[:, 1] + 0.1 * torch.randn(N)
    return x, y


def main():
    p = Params()
    opt = torch.optim.SGD(p.all(), lr=0.05, momentum=0.9)
    x, y = make_data()

    counter = FlopCounterMode(display=False)
    with counter:
        nll.__wrapped__(*p.all(), x, y).backward()
    print(f"one step is {counter.get_total_flops() / 1e6:.1f} MFLOP")
    opt.zero_grad()

    laps = []
    for k in range(STEPS):
        t0 = time.perf_counter()
        loss = nll(*p.all(), x, y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        laps.append(time.perf_counter() - t0)
        if k % 50 == 0:
            print(f"step {k:4d} nll {loss.item():.4f}")
    laps = sorted(laps[STEPS // 2:])
    print(f"final nll {loss.item():.4f}")
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
