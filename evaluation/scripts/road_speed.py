"""Message-passing forecast of link speeds on a synthetic road graph."""
import os
import time

import torch
import torch.nn as nn

torch.manual_seed(71)

NODES = 3000
LINKS = 18000
WIDTH = 48
STEPS = int(os.environ.get("STEPS", "2200"))
LOG = 100


class Exchange(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.send = nn.Linear(width, width)
        self.keep = nn.Linear(width, width)

    def forward(self, h, src, dst):
        msg = torch.relu(self.send(h))[src]
        inbox = torch.zeros_like(h).index_add(0, dst, msg * torch.sigmoid(h[dst]))
        return torch.tanh(self.keep(h) + 0.2 * inbox)


class RoadNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(6, WIDTH)
        self.layers = nn.ModuleList(Exchange(WIDTH) for _ in range(2))
        self.dec = nn.Linear(WIDTH, 1)

    def forward(self, x, src, dst):
        h = self.enc(x)
        for layer in self.layers:
            h = layer(h, src, dst)
        return self.dec(h).squeeze(-1)


def main():
    src = torch.randint(0, NODES, (LINKS,))
    dst = torch.randint(0, NODES, (LINKS,))
    days = [torch.randn(NODES, 6) for _ in range(6)]
    truth = [torch.sin(d[:, 0]) + 0.3 * d[:, 1] for d in days]
    net = RoadNet()
    model = torch.compile(net)
    opt = torch.optim.Adam(net.parameters(), lr=3e-3)
    t0 = time.perf_counter()
    for step in range(1, STEPS + 1):
        k = step % len(days)
        loss = (model(days[k], src, dst) - truth[k]).square().mean()
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % LOG == 0:
            with torch.no_grad():
                val = (model(days[0], src, dst) - truth[0]).abs().mean()
            dt = (time.perf_counter() - t0) / LOG * 1e3
            print(f"step {step} loss {loss.item():.5f} mae {val.item():.4f} {dt:.3f} ms/step")
            t0 = time.perf_counter()


if __name__ == "__main__":
    main()
