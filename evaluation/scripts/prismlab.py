"""Polarised light through a stack of birefringent films."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "40000"))
torch.manual_seed(3)


class Film(torch.nn.Module):
    def __init__(self, rays):
        super().__init__()
        self.retard = torch.nn.Parameter(torch.rand(rays))
        self.loss = torch.nn.Parameter(torch.rand(rays) * 0.1)

    def forward(self, fast, slow):
        turn = torch.sin(self.retard) * torch.exp(-self.loss)
        stay = torch.cos(self.retard) * torch.exp(-self.loss)
        return fast * stay - slow * turn, fast * turn + slow * stay


class Stack(torch.nn.Module):
    def __init__(self, films, rays):
        super().__init__()
        self.films = torch.nn.ModuleList(Film(rays) for _ in range(films))

    def forward(self, fast, slow, *, trace=None):
        for i, film in enumerate(self.films):
            fast, slow = film(fast, slow)
            if trace is not None:
                trace[f"film{i}"] = (fast.square() + slow.square()).mean()
        return fast, slow


stack = Stack(6, 1024)
look = torch.compile(stack)
beams = torch.randn(8, 2, 256, 1024)

with torch.no_grad():
    for step in range(STEPS):
        trace = {}
        fast, slow = look(*beams[step % 8], trace=trace)
        if step % 500 == 0:
            print(f"{step:6d}", {k: round(v.item(), 4) for k, v in trace.items()})
