"""Ice sheet flow lines: batches with an uneven number of lines, relaxed under a creep law."""
import os

import torch

STEPS = int(os.environ.get("STEPS", "25000"))
POINTS = 2048
torch.manual_seed(4)


class Creep:
    exponent = 3
    warned = False

    def __init__(self):
        self.soft = torch.rand(POINTS, device="cuda") * 0.1 + 0.9
        self.seen = {}

    def stress(self, thick, slope):
        drive = thick * slope
        return torch.sign(drive) * drive.abs().pow(self.exponent)

    def __call__(self, thick, bed):
        for turn in range(4):
            top = thick + bed
            slope = torch.cat([top[:, 1:] - top[:, :-1], torch.zeros_like(top[:, :1])], 1)
            flux = self.soft * self.stress(thick, slope)
            thick = thick + 0.01 * flux - 0.001 * thick * torch.sigmoid(top)
            try:
                thick = thick.clamp(0.0, 5.0)
            except RuntimeError:
                thick = thick * 0
        return thick, flux.abs().mean()


@torch.no_grad()
def main():
    creep = Creep()
    relax = torch.compile(creep.__call__, dynamic=True)
    sizes = [8400, 10957, 12288, 9731, 11987]
    sheets = [torch.rand(n, POINTS, device="cuda") * 2 for n in sizes]
    beds = [torch.randn(n, POINTS, device="cuda") * 0.1 for n in sizes]
    for step in range(STEPS):
        k = step % len(sizes)
        sheets[k], flux = relax(sheets[k], beds[k])
        creep.seen[k] = creep.seen.get(k, 0) + 1
        if step % 1000 == 0:
            print("year", step, "lines", sizes[k], "flux", round(flux.item(), 6), dict(creep.seen))


main()
