"""Training with an EMA copy evaluated in the same compiled model."""
import os
import os
import time
import torch
import torch.nn as nn

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(13)

BIG = DEV == "cuda"
N, DIM, DEPTH = (16384, 512, 6) if BIG else (256, 32, 2)
STEPS = 500 if BIG else 24
STEPS = int(os.environ.get("STEPS", STEPS))
EVERY = 10


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


class Gated(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n = nn.LayerNorm(d)
        self.a = nn.Linear(d, d)
        self.p = nn.Parameter(torch.rand(4, d))

    def forward(self, x):
        h = self.a(self.n(x))
        p = self.p
        h = torch.sin(h * p[0]) * torch.sigmoid(h + p[1]) + torch.tanh(p[2] * h) * p[3]
        h = h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5)
        return x + 0.3 * h


def swap(model, ema):
    with torch.no_grad():
        for p, e in zip(model.parameters(), ema):
            tmp = p.clone()
            p.copy_(e)
            e.copy_(tmp)


def main():
    net = nn.Sequential(*[Gated(DIM) for _ in range(DEPTH)], nn.Linear(DIM, 1)).to(DEV)
    ema = [p.detach().clone() for p in net.parameters()]
    model = torch.compile(net)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=DEV == "cuda")
    x = torch.randn(N, DIM, device=DEV)
    y = torch.sin(x[:, :1] * 2) + x[:, 1:2] * x[:, 2:3]
    laps = []
    for k in range(STEPS):
        sync()
        t0 = time.perf_counter()
        with torch.autocast(DEV, dtype=torch.bfloat16):
            loss = (model(x) - y).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        with torch.no_grad():
            torch._foreach_lerp_(ema, list(net.parameters()), 0.05)
        sync()
        laps.append(time.perf_counter() - t0)
        if k % EVERY == EVERY - 1:
            swap(net, ema)
            net.eval()
            with torch.no_grad(), torch.autocast(DEV, dtype=torch.bfloat16):
                ev = (model(x[: N // 4]) - y[: N // 4]).square().mean()
            net.train()
            swap(net, ema)
            if k % 100 == 99:
                print(f"step {k + 1:4d} train {loss.item():.4f} ema {ev.item():.4f}")
    laps = sorted(laps[STEPS // 2:])
    print(f"final {loss.item():.5f}")
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
