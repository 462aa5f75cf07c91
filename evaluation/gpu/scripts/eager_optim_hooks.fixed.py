"""Low-memory finetuning: apply the update as soon as a gradient is ready."""
import os
import os
import time
import torch
import torch.nn as nn

DEV = os.environ.get("DEVICE", "cuda")
torch.manual_seed(7)

DEPTH, DIM, TOK = 24, 192, 512
STEPS = 450
STEPS = int(os.environ.get("STEPS", STEPS))


def sync():
    if DEV == "cuda":
        torch.cuda.synchronize()


class Mixer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.n1 = nn.LayerNorm(d)
        self.w1 = nn.Linear(d, 2 * d)
        self.w2 = nn.Linear(d, d)
        self.gain = nn.Parameter(torch.full((d,), 0.1))

    def forward(self, x):
        a, b = self.w1(self.n1(x)).chunk(2, -1)
        return x + self.gain * self.w2(a * torch.sigmoid(b))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Mixer(DIM) for _ in range(DEPTH))
        self.head = nn.Linear(DIM, 32)

    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return self.head(x)


def attach(net):
    opts = {p: torch.optim.AdamW([p], lr=3e-4, foreach=False) for p in net.parameters()}

    def on_grad(p):
        opts[p].step()
        opts[p].zero_grad()

    for p in opts:
        p.register_post_accumulate_grad_hook(on_grad)
    return opts


def main():
    net = Net().to(DEV)
    opt = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=DEV == "cuda")
    model = torch.compile(net)
    data = [(torch.randn(TOK, DIM, device=DEV), torch.randint(0, 32, (TOK,), device=DEV))
            for _ in range(16)]
    laps = []
    for k in range(STEPS):
        x, y = data[k % 16]
        sync()
        t0 = time.perf_counter()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        sync()
        laps.append(time.perf_counter() - t0)
        if k % 50 == 0:
            print(f"step {k:4d} loss {loss.item():.4f}")
    laps = sorted(laps[STEPS // 2:])
    print(f"final loss {loss.item():.4f}")
    print(f"median step {laps[len(laps) // 2] * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
