"""Neural audio codec: frames squeezed to 5 bits per channel with a straight-through quantiser."""
import os
import time
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(24)
dev = "cuda"
FRAME, D, BATCH = 320, 512, 16384


class Quantise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        return torch.round(x.clamp(-1, 1) * levels) / levels

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 1.0).to(g.dtype), None


class Snake(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return x + torch.sin(self.alpha * x).pow(2) / (self.alpha + 1e-6)


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.e1, self.s1, self.n1 = nn.Linear(FRAME, D), Snake(D), nn.LayerNorm(D)
        self.e2, self.s2 = nn.Linear(D, 256), Snake(256)
        self.d1, self.s3, self.n3 = nn.Linear(256, D), Snake(D), nn.LayerNorm(D)
        self.d2 = nn.Linear(D, FRAME)

    def forward(self, x):
        h = self.s2(self.e2(self.n1(self.s1(self.e1(x)))))
        q = Quantise.apply(torch.tanh(h), 16.0)
        return self.d2(self.n3(self.s3(self.d1(q))))


def loss_fn(model, x):
    y = model(x)
    env = (y.abs() + 1e-4).log() - (x.abs() + 1e-4).log()
    return F.l1_loss(y, x) + 0.02 * (env * env).mean() + 0.1 * (torch.diff(y) - torch.diff(x)).square().mean()


def main():
    torch.set_float32_matmul_precision("high")
    net = Codec().to(dev)
    objective = torch.compile(loss_fn)
    opt = torch.optim.Adam(net.parameters(), lr=4e-4, fused=True)
    n = torch.arange(FRAME, device=dev) / 16000
    t0 = time.time()
    for it in range(int(os.environ.get("STEPS", "12000"))):
        f = 80 + 3000 * torch.rand(BATCH, 1, device=dev)
        x = torch.sin(6.2832 * f * n) * torch.rand(BATCH, 1, device=dev)
        loss = objective(net, x)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if it % 500 == 0:
            print(f"{it} loss {loss.item():.4f} {time.time() - t0:.1f}s", flush=True)


if __name__ == "__main__":
    main()
