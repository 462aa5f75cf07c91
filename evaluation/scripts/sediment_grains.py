"""Settling of sediment grains: contact energy over a pair list, forces by differentiation."""
import os
import threading
import time
import torch
from torch.profiler import record_function

torch.manual_seed(13)

GRAINS, PAIRS = 3000, 45000
ledger = threading.Lock()


class Bed:
    def __init__(self):
        self.first = torch.randint(0, GRAINS, (PAIRS,))
        self.second = (self.first + torch.randint(1, GRAINS, (PAIRS,))) % GRAINS
        self.radius = 0.02 + 0.02 * torch.rand(GRAINS)
        self.reach = None

    def energy(self, place):
        if self.reach is None:
            self.reach = self.radius[self.first] + self.radius[self.second]
        with record_function("contacts"):
            gap = place[self.first] - place[self.second]
            dist = (gap.square().sum(-1) + 1e-8).sqrt()
            overlap = (self.reach - dist).clamp(min=0.0)
            contact = 50.0 * overlap ** 2.5
            stick = -0.02 * torch.exp(-((dist - self.reach) / 0.05).square())
        weight = 0.3 * (place[:, 2] * self.radius ** 3 * 4e4).sum()
        floor = 80.0 * (self.radius - place[:, 2]).clamp(min=0.0).square().sum()
        return (contact + stick).sum() + weight + floor


def main():
    bed = Bed()
    energy = torch.compile(bed.energy)
    place = torch.rand(GRAINS, 3)
    speed = torch.zeros(GRAINS, 3)
    book = []
    start = time.time()
    for step in range(int(os.environ.get("STEPS", "9000"))):
        place.requires_grad_(True)
        e = energy(place)
        (grad,) = torch.autograd.grad(e, place)
        place = place.detach()
        speed = 0.98 * speed - 2e-4 * grad
        place = place + 0.05 * speed
        with ledger:
            book.append(e.item())
        if step % 900 == 899:
            print(f"step {step + 1}  energy {sum(book[-900:]) / 900:.3f}  height {place[:, 2].mean().item():.4f}  "
                  f"{time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
