"""Ring of leaky spiking cells driven by a rotating cue; several membrane updates per frame."""
import os

import torch
from torch import nn

STEPS = int(os.environ.get("STEPS", "12000"))
CELLS, RINGS, SUBSTEPS = 256, 64, 64
torch.manual_seed(21)


class Ring(nn.Module):
    def __init__(self):
        super().__init__()
        place = torch.arange(CELLS) * (2 * torch.pi / CELLS)
        kernel = torch.cos(place[:, None] - place[None, :]) * 0.5 - 0.2
        self.register_buffer("couple", kernel * (4.0 / CELLS))
        self.register_buffer("leak", torch.rand(CELLS) * 0.05 + 0.9)

    def forward(self, volt, cue):
        v = volt
        total = torch.zeros_like(volt)
        for _ in range(SUBSTEPS):
            fired = torch.sigmoid(12.0 * (v - 1.0))
            v = self.leak * v * (1.0 - fired) + torch.mm(fired, self.couple) + 0.1 * cue
            total = total + fired
        volt.copy_(v)
        return total / SUBSTEPS


def cue_at(angle, place):
    return torch.exp(3.0 * (torch.cos(place - angle) - 1.0)).expand(RINGS, CELLS)


@torch.no_grad()
def main():
    ring = Ring().to("cuda")
    frame = torch.compile(ring, mode="reduce-overhead")
    place = torch.arange(CELLS, device="cuda") * (2 * torch.pi / CELLS)
    angle = torch.zeros((), device="cuda")
    volt = torch.rand(RINGS, CELLS, device="cuda")
    trace = torch.zeros(RINGS, CELLS, device="cuda")
    for step in range(STEPS):
        cue = cue_at(angle, place).contiguous()
        rate = frame(volt, cue)
        trace.lerp_(rate, 0.05)
        angle += 0.01
        if step % 2000 == 0:
            print("frame", step, "rate", round(trace.mean().item(), 5))
    print("peak cell", int(trace.mean(0).argmax()))


main()
