"""Multi-task model: one trunk, sixteen heads, tasks sampled at random."""
import os
import random
import time
import torch
import torch.nn as nn

torch.manual_seed(26)
random.seed(26)

TASKS = [f"task_{c}" for c in "abcdefghijklmnop"]
DIM, ROWS, STEPS = 48, 4000, 300
STEPS = int(os.environ.get("STEPS", STEPS))


def squash(h, a):
    h = torch.sin(a * h) * torch.sigmoid(h) + 0.1 * torch.tanh(h * h)
    return h * torch.rsqrt(h.square().mean(-1, keepdim=True) + 1e-5)


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.ModuleList(nn.Linear(DIM, DIM) for _ in range(4))
        self.a = nn.Parameter(torch.rand(4, DIM))
        self.heads = nn.ModuleDict({t: nn.Linear(DIM, 1) for t in TASKS})

    def forward(self, x, head):
        for i, lin in enumerate(self.trunk):
            x = x + squash(lin(x), self.a[i])
        return head(x).squeeze(-1)


def main():
    net = MultiTask()
    model = torch.compile(net)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    x = torch.randn(ROWS, DIM)
    targets = {t: torch.sin(x[:, i] * 2) for i, t in enumerate(TASKS)}
    lap = []
    running = dict.fromkeys(TASKS, 1.0)
    for k in range(STEPS):
        task = random.choice(TASKS)
        t0 = time.perf_counter()
        loss = (model(x, net.heads[task]) - targets[task]).square().mean()
        loss.backward()
        opt.step()
        opt.zero_grad()
        lap.append(time.perf_counter() - t0)
        running[task] = 0.9 * running[task] + 0.1 * loss.item()
        if k % 60 == 0:
            print(f"step {k:4d} {task} loss {loss.item():.4f}")
    late = lap[STEPS // 2:]
    print(f"mean loss over tasks {sum(running.values()) / len(TASKS):.4f}")
    print(f"mean step {sum(late) / len(late) * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
