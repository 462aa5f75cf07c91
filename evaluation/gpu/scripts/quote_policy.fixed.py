"""Online fine-tuning of a quoting policy; a side thread keeps rolling statistics for the desk's dashboard."""
import collections
import os
import threading
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

BOOKS, LEVELS, HIDDEN, DEPTH = (64, 10, 64, 3) if SMALL else (512, 20, 256, 10)


class Dashboard(threading.Thread):
    """Rolling count, mean and extremes of the last ticks, by venue."""

    def __init__(self, window=2000):
        super().__init__(daemon=True)
        self.inbox = collections.deque()
        self.closing = threading.Event()
        self.window = window
        self.ticks = collections.defaultdict(lambda: collections.deque(maxlen=window))
        self.summary = {}

    def post(self, venue, step, notional):
        self.inbox.append((venue, step, notional))

    def run(self):
        while not self.closing.wait(0.5):
            while self.inbox:
                venue, step, notional = self.inbox.popleft()
                self.ticks[venue].append((step, notional))
            for venue, rows in self.ticks.items():
                values = [n for _, n in rows]
                self.summary[venue] = (len(values), sum(values) / len(values), min(values), max(values))


class ResidualBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(HIDDEN)
        self.up = nn.Linear(HIDDEN, 2 * HIDDEN)
        self.down = nn.Linear(2 * HIDDEN, HIDDEN)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(4 * LEVELS, HIDDEN)
        self.blocks = nn.Sequential(*(ResidualBlock() for _ in range(DEPTH)))
        self.mean = nn.Linear(HIDDEN, 2)
        self.log_std = nn.Parameter(torch.zeros(2))

    def forward(self, book, action, advantage):
        mean = self.mean(self.blocks(F.silu(self.inp(book))))
        z = (action - mean) * torch.exp(-self.log_std)
        log_prob = -0.5 * (z * z).sum(-1) - self.log_std.sum()
        return -(log_prob.clamp(-20, 5) * advantage).mean() - 0.01 * self.log_std.sum()


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


def main():
    torch.manual_seed(0)
    policy = Policy().to(device)
    net = torch.compile(policy)
    opt = torch.optim.Adam(policy.parameters(), lr=1e-4, fused=device.type == "cuda")
    books = torch.randn(16, BOOKS, 4 * LEVELS, device=device)
    actions = torch.randn(16, BOOKS, 2, device=device)
    advantages = torch.randn(16, BOOKS, device=device)
    dashboard = Dashboard()
    dashboard.start()
    half = STEPS // 2
    for i in range(STEPS):
        if i == half:
            sync()
            t0 = time.perf_counter()
        k = i % 16
        loss = net(books[k], actions[k], advantages[k])
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        dashboard.post(("XNAS", "ARCX", "BATS")[i % 3], i, 100.0 + 7.0 * (i % 13))
    sync()
    elapsed = (time.perf_counter() - t0) / (STEPS - half)
    dashboard.closing.set()
    dashboard.join()
    print(f"loss {loss.item():.4f}  venues {sorted(dashboard.summary)}")
    print(f"step_ms={elapsed * 1e3:.3f}")


if __name__ == "__main__":
    main()
