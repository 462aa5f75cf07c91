"""Streaming inference of a temporal graph network over card transactions (one memory row per account)."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

ACCOUNTS, EVENTS = (5000, 64) if SMALL else (3_000_000, 2048)
MEM, FEAT, TIME = 128, 32, 32


class TimeEncoding(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("freq", 10.0 ** -torch.linspace(0, 6, TIME))

    def forward(self, dt):
        return torch.cos(dt[:, None] * self.freq)


class TemporalNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = TimeEncoding()
        self.message = nn.Linear(2 * MEM + FEAT + TIME, MEM)
        self.update_in = nn.Linear(MEM, 3 * MEM)
        self.update_h = nn.Linear(MEM, 3 * MEM)
        self.score = nn.Sequential(nn.Linear(2 * MEM, MEM), nn.ReLU(), nn.Linear(MEM, 1))

    def gru(self, x, h):
        r, z, n = self.update_in(x).chunk(3, dim=-1)
        hr, hz, hn = self.update_h(h).chunk(3, dim=-1)
        z = torch.sigmoid(z + hz)
        return (1 - z) * torch.tanh(n + torch.sigmoid(r + hr) * hn) + z * h

    def forward(self, memory, last_seen, src, dst, feat, now):
        hs, hd = memory[src], memory[dst]
        risk = self.score(torch.cat([hs, hd], dim=-1)).squeeze(-1)
        clock = self.time(now - last_seen[src])
        msg = F.relu(self.message(torch.cat([hs, hd, feat, clock], dim=-1)))
        memory.index_copy_(0, src, self.gru(msg, hs))
        last_seen.index_copy_(0, src, now)
        return torch.sigmoid(risk), memory, last_seen


def make_events(n):
    g = torch.Generator().manual_seed(9)
    events = []
    for k in range(n):
        pick = torch.randint(0, ACCOUNTS - 4 * EVENTS, (1,), generator=g)
        src = pick + torch.randperm(4 * EVENTS, generator=g)[:EVENTS]
        dst = torch.randint(0, ACCOUNTS, (EVENTS,), generator=g)
        feat = torch.randn(EVENTS, FEAT, generator=g)
        now = torch.rand(EVENTS, generator=g) + k
        events.append(tuple(t.to(device) for t in (src, dst, feat, now)))
    return events


def sync():
    if device.type == "cuda":
        torch.cuda.synchronize()


@torch.no_grad()
def main():
    torch.manual_seed(0)
    net = torch.compile(TemporalNetwork().to(device).eval())
    memory = torch.zeros(ACCOUNTS, MEM, device=device)
    last_seen = torch.zeros(ACCOUNTS, device=device)
    events = make_events(16)
    flagged = torch.zeros((), device=device)
    half = STEPS // 2
    for i in range(STEPS):
        if i == half:
            sync()
            t0 = time.perf_counter()
        src, dst, feat, now = events[i % 16]
        risk, memory, last_seen = net(memory, last_seen, src, dst, feat, now)
        flagged += (risk > 0.9).sum()
    sync()
    elapsed = (time.perf_counter() - t0) / (STEPS - half)
    print(f"flagged {flagged.item():.0f}  memory norm {memory.norm().item():.3f}")
    print(f"step_ms={elapsed * 1e3:.3f}")


if __name__ == "__main__":
    main()
